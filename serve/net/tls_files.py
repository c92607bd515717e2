"""Files of certificates and keys: read, and refused when they cannot serve."""

import ssl


class TlsError(ValueError):
    """The configured certificate files cannot serve; the text says which and why."""


def read_file(path: str) -> bytes:
    """Its content. TlsError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise TlsError(f"{path} cannot be read: {error.strerror}") from None


def check_pair(cert_file: str, key_file: str) -> None:
    """TlsError unless these are a certificate chain and its key."""
    try:
        # The password is for keys that need one: the alternative is a question on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert_file, key_file, password="")
    except OSError as error:
        raise TlsError(
            f"{cert_file} and {key_file} are not a PEM certificate chain and its unencrypted key: "
            f"{error.reason if isinstance(error, ssl.SSLError) else error.strerror}"
        ) from None


def check_authority(path: str, content: bytes, whose: str) -> None:
    """TlsError unless `content`, which is the file's, has a certificate of `whose` in it."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=content.decode())
    except (ssl.SSLError, ValueError):  # (the latter for no text, and for an empty file)
        raise TlsError(f"{path} holds no PEM certificate of {whose}") from None
