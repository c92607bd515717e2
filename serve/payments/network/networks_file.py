"""The file of card networks, `PAYMENTS_NETWORKS`: where they are, and which one live merchants use.

    version: 1
    live: acquirer
    networks:
      acquirer:
        url: https://gateway.example.com/tollgate
        secret_file: /etc/tollgate/acquirer-secret     # or secret_files, two while one is replaced
        timeout_ms: 8000
        ca_file: /etc/tollgate/acquirer-ca.pem         # for a certificate of their own authority
        certificate_file: /etc/tollgate/our.pem        # for mutual TLS, with key_file
        key_file: /etc/tollgate/our-key.pem
        allow_http: false                              # true: within one machine, to try things out

A network that live merchants use no more stays in the file, for what it has authorised.
"""

import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tollgate.serve.net.guarded_client import TargetPolicy, target_refusal
from tollgate.serve.payments.network.http_network import Gateway
from tollgate.serve.payments.network.simulator import NAME as SIMULATED
from tollgate.serve.payments.reference.data_file import DataFields, DataNode, read_data_file
from tollgate.serve.payments.secrets.master_secret import SecretFileError, read_secret

NETWORKS_MAX = 16
TIMEOUT_MS = 8_000
TIMEOUT_MIN_MS, TIMEOUT_MAX_MS = 100, 9_000
SECRET_LENGTH_MIN = 32
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_OPTIONAL = (
    *("secret_file", "secret_files", "timeout_ms", "allow_http"),
    *("ca_file", "certificate_file", "key_file"),
)


@dataclass(frozen=True, slots=True)
class ConfiguredNetworks:
    """`live`: the name of the one that live merchants use."""

    live: str
    gateways: Sequence[Gateway]


def load_networks(path: Path) -> ConfiguredNetworks:
    """The networks of a file. Raises DataFileError: one line for the operator."""
    fields = read_data_file(path).fields(("version", "live", "networks"))
    if fields["version"].integer() != 1:
        fields["version"].refuse("is not 1")
    gateways = [_gateway(name, node) for name, node in fields["networks"].pairs()]
    if not 0 < len(gateways) <= NETWORKS_MAX:
        fields["networks"].refuse(f"holds {len(gateways)} networks, and not 1 to {NETWORKS_MAX}")
    live = fields.text("live")
    if all(gateway.name != live for gateway in gateways):
        fields["live"].refuse(f"{live!r} is none of the networks")
    return ConfiguredNetworks(live, gateways)


def _gateway(name: str, node: DataNode) -> Gateway:
    if not _NAME.fullmatch(name) or name == SIMULATED:
        node.refuse("is no name of a network: small letters, digits and hyphens, at most 32")
    fields = node.fields(("url",), _OPTIONAL)
    url, allows_http = fields.text("url").rstrip("/"), fields.is_set("allow_http")
    refusal = target_refusal(url, TargetPolicy(allows_http=allows_http, allows_private=True))
    if refusal is not None:
        fields["url"].refuse(refusal.value)
    timeout_ms = fields.integer("timeout_ms") or TIMEOUT_MS
    if not TIMEOUT_MIN_MS <= timeout_ms <= TIMEOUT_MAX_MS:
        fields["timeout_ms"].refuse(f"is not between {TIMEOUT_MIN_MS} and {TIMEOUT_MAX_MS}")
    return Gateway(name, url, _secrets(node, fields), timeout_ms, allows_http, _tls(fields))


def _secrets(node: DataNode, fields: DataFields) -> tuple[str, ...]:
    single, several = fields.get("secret_file"), fields.get("secret_files")
    nodes = [single] if single is not None else several.items() if several is not None else []
    if not 1 <= len(nodes) <= 2 or (single is not None and several is not None):
        node.refuse("needs a secret_file, or one or two secret_files")
    found = []
    for each in nodes:
        try:
            secret = read_secret(Path(each.text()), "there is no secret of the network")
        except SecretFileError as error:
            each.refuse(str(error))
        if len(secret) < SECRET_LENGTH_MIN:
            each.refuse(f"holds a secret of less than {SECRET_LENGTH_MIN} characters")
        found.append(secret)
    return tuple(found)


def _tls(fields: DataFields) -> ssl.SSLContext | None:
    authority, certificate, key = (
        fields.text(name) for name in ("ca_file", "certificate_file", "key_file")
    )
    if bool(certificate) != bool(key):
        fields["certificate_file" if certificate else "key_file"].refuse(
            "certificate_file and key_file go together"
        )
    if not authority and not certificate:
        return None
    try:
        context = ssl.create_default_context(cafile=authority or None)
        if certificate:
            context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        name = "certificate_file" if certificate else "ca_file"
        fields[name].refuse(f"the files of TLS cannot be used: {error}")
    return context
