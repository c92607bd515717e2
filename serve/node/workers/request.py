"""Asks the origin of workers (`origin.py`) for a process: ADDRESS PYTHON WORDS…

It is run as a file, without the installed packages, for each worker that starts. When the origin
does not answer, it becomes the interpreter and does it all by itself.
"""

import json
import os
import socket
import sys

ANSWER_WITHIN_S = 10.0
PID_BYTES_MAX = 32


def main(address: str, python: str, *words: str) -> None:
    """Returns when there is a process that runs the words; OSError: there can be none."""
    request = json.dumps([words, dict(os.environ), os.getcwd()]).encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_WITHIN_S)
            connection.connect(address)
            sent = socket.send_fds(connection, [request], [0, 1, 2])
            connection.sendall(request[sent:])
            connection.shutdown(socket.SHUT_WR)
            if connection.recv(PID_BYTES_MAX):
                return
    except OSError as error:
        sys.stderr.write(f"{address} forks no worker: {error}\n")
    os.execv(python, [python, *words])


if __name__ == "__main__":
    main(*sys.argv[1:])
