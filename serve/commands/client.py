"""`tollgate client`: one rate-limit question over gRPC, with the reference's own flags."""

from pathlib import Path

import click

from tollgate.serve.node.run_record import running
from tollgate.serve.ratelimit.client import CallFailed, ClientTls, ask, lines_of, parse_descriptor
from tollgate.serve.settings import Settings, process_environment
from tollgate.serve.settings.values import is_loopback_host

EXIT_FAILED = 1
ANY_HOST = ("", "0.0.0.0", "::", "[::]")
HITS_ADDEND_MAX = 2**32 - 1


def _flag(name: str) -> tuple[str, str]:
    """Both spellings: the reference's flags have one dash."""
    return f"-{name}", f"--{name}"


@click.command()
@click.option(
    *_flag("dial_string"),
    default=None,
    metavar="ADDRESS",
    help="host:port of the service, or unix:///path of its socket. "
    "[default: where a Tollgate with the settings of this environment listens]",
)
@click.option(*_flag("domain"), default="", help="The domain to ask about.")
@click.option(
    *_flag("descriptors"),
    multiple=True,
    metavar="NAME=VALUE[,NAME=VALUE...]",
    help="One descriptor; repeat the flag for more.",
)
@click.option(
    *_flag("hits_addend"),
    type=click.IntRange(0, HITS_ADDEND_MAX),
    default=1,
    show_default=True,
    help="How many hits to count; the service takes 0 for 1.",
)
@click.option(*_flag("grpc-use-tls"), is_flag=True, help="Speak TLS.")
@click.option(*_flag("grpc-server-ca-file"), default="", help="CA that signed the server's.")
@click.option(*_flag("grpc-cert-file"), default="", help="Certificate to show.")
@click.option(*_flag("grpc-key-file"), default="", help="Its private key.")
@click.option(*_flag("oltp-protocol"), default="", help="Has no effect.")
def client(
    dial_string: str | None,
    domain: str,
    descriptors: tuple[str, ...],
    hits_addend: int,
    grpc_use_tls: bool,
    grpc_server_ca_file: str,
    grpc_cert_file: str,
    grpc_key_file: str,
    oltp_protocol: str,
) -> None:
    """Ask a rate-limit service whether a request is within its limits, and count it.

    The exit code is 0 for any answer, 1 when the call failed, 2 for wrong flags.
    """
    if oltp_protocol:
        click.echo("-oltp-protocol has no effect: this client sends no traces", err=True)
    tls = _tls(grpc_use_tls, ClientTls(grpc_server_ca_file, grpc_cert_file, grpc_key_file))
    try:
        asked = [parse_descriptor(text) for text in descriptors]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    dial_string = dial_string or own_address(Settings.from_environment(process_environment()))
    try:
        response = ask(dial_string, domain, asked, hits_addend, tls)
    except OSError as error:
        raise click.UsageError(f"{error.filename} cannot be read: {error.strerror}") from None
    except CallFailed as error:
        click.echo(f"error: {dial_string}: {error}", err=True)
        raise click.exceptions.Exit(EXIT_FAILED) from None
    for line in lines_of(asked, response):
        click.echo(line)


def own_address(settings: Settings) -> str:
    """The gRPC door of a Tollgate with these settings, as a caller on this machine dials it."""
    grpc = settings.grpc
    if grpc.uds:
        return f"unix://{Path(grpc.uds).absolute()}"
    port = grpc.port or _free_choice(settings)
    # The usual name in certificates is a name.
    if is_loopback_host(grpc.host) or grpc.host in ANY_HOST:
        return f"localhost:{port}"
    return f"[{grpc.host}]:{port}" if ":" in grpc.host else f"{grpc.host}:{port}"


def _free_choice(settings: Settings) -> str:
    """The port that a start chose, which it wrote down."""
    record = running(settings.process.data)
    if record is None or not record.is_ready:
        raise click.UsageError("nothing runs with these settings: say -dial_string host:port")
    return record.addresses["gRPC"].rpartition(":")[2]


def _tls(is_wanted: bool, files: ClientTls) -> ClientTls | None:
    if bool(files.cert_file) != bool(files.key_file):
        raise click.UsageError("-grpc-cert-file and -grpc-key-file go together: give both")
    if not is_wanted and files != ClientTls():
        raise click.UsageError("certificate files need -grpc-use-tls")
    return files if is_wanted else None
