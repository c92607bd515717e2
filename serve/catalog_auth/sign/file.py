"""The file that says which objects are signed, for whom and for how long (CATALOG_SIGNING).

callers: keys                  those who show one of CATALOG_SIGNING_KEYS; or `anybody`
expiry_s: 360                  how long a URL holds when the caller does not say
expiry_max_s: 3600             and at most
buckets:
  - name: scenes
    prefixes: [2026/, public/] the beginnings of the keys; "" for all of them
    credentials: AWS           from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE
                               and AWS_CONFIG_FILE, of the environment; any other word likewise
    region: eu-central-1
    endpoint: https://…        of another store than Amazon's
    bucket_in_host: false      whether that store has buckets in its host name
    requester_pays: false
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import Meta, Struct

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.catalog_auth.sign.credentials import (
    BadCredentialsError,
    credentials_from_environment,
)
from tollgate.serve.catalog_auth.sign.signer import (
    DEFAULT_EXPIRY_S,
    EXPIRY_MAX_S,
    EXPIRY_MIN_S,
    SignedBucket,
    Signer,
    SigningConfiguration,
    SigningCredentials,
)

FILE_BYTES_MAX = 1024 * 1024
ShortText = Annotated[str, Meta(min_length=1, max_length=200)]
Cloud = Annotated[str, Meta(pattern=r"^[A-Z][A-Z0-9_]{0,40}$")]
Endpoint = Annotated[str, Meta(pattern=r"^https?://[^\s/?#@]+/?$")]
Expiry = Annotated[int, Meta(ge=EXPIRY_MIN_S, le=EXPIRY_MAX_S)]


class SigningFileError(Exception):
    """The file cannot be used; the text is one line with the reason."""


class BucketEntry(Struct, forbid_unknown_fields=True):
    name: ShortText
    prefixes: Annotated[list[str], Meta(min_length=1, max_length=1_000)]
    credentials: Cloud = "AWS"
    region: ShortText = "us-east-1"
    endpoint: Endpoint | None = None
    bucket_in_host: bool = False
    requester_pays: bool = False


class SigningEntries(Struct, forbid_unknown_fields=True):
    callers: Literal["keys", "anybody"]
    buckets: Annotated[list[BucketEntry], Meta(max_length=10_000)]
    expiry_s: Expiry = DEFAULT_EXPIRY_S
    expiry_max_s: Expiry = 3_600


@dataclass(frozen=True, slots=True)
class SigningService:
    """Signs for callers who show one of `keys`; for anybody when there are none."""

    signer: Signer
    keys: tuple[str, ...]


def signing_service(
    name: str,
    read: Callable[[str], str],
    keys: tuple[str, ...],
    environment: Mapping[str, str],
    clock: Clock,
) -> SigningService:
    """The door of the file called `name`; `read` gives the text of a file. Raises
    SigningFileError."""
    try:
        entries = msgspec.convert(yaml.safe_load(read(name)), SigningEntries)
        credentials = _credentials(entries, environment, read)
    except OSError as error:
        raise SigningFileError(f"{error.filename}: {error.strerror}") from None
    except (yaml.YAMLError, msgspec.ValidationError, BadCredentialsError) as error:
        raise SigningFileError(f"{name}: {' '.join(str(error).split())}") from None
    buckets = [bucket.name for bucket in entries.buckets]
    if len(set(buckets)) != len(buckets):
        raise SigningFileError(f"{name}: a bucket is listed twice")
    if entries.expiry_s > entries.expiry_max_s:
        raise SigningFileError(f"{name}: expiry_s is above expiry_max_s")
    if entries.callers == "keys" and not keys:
        raise SigningFileError(f"{name}: callers need keys, and CATALOG_SIGNING_KEYS has none")
    configuration = SigningConfiguration(
        tuple(map(_bucket, entries.buckets)), credentials, entries.expiry_s, entries.expiry_max_s
    )
    return SigningService(Signer(configuration, clock), keys if entries.callers == "keys" else ())


def _credentials(
    entries: SigningEntries, environment: Mapping[str, str], read: Callable[[str], str]
) -> dict[str, SigningCredentials]:
    found: dict[str, SigningCredentials] = {}
    for cloud in {bucket.credentials for bucket in entries.buckets}:
        credentials = credentials_from_environment(environment, read, cloud)
        if credentials is None:
            raise BadCredentialsError(
                f"a bucket is signed for with {cloud}'s keys, and the environment has none "
                f"({cloud}_ACCESS_KEY_ID and {cloud}_SECRET_ACCESS_KEY, or {cloud}_PROFILE and "
                f"{cloud}_CONFIG_FILE, and not {cloud}_NO_SIGN_REQUEST=YES)"
            )
        found[cloud] = credentials
    return found


def _bucket(entry: BucketEntry) -> SignedBucket:
    return SignedBucket(
        name=entry.name,
        key_prefixes=tuple(entry.prefixes),
        credentials=entry.credentials,
        region=entry.region,
        endpoint=entry.endpoint,
        is_bucket_in_host=entry.bucket_in_host,
        is_requester_pays=entry.requester_pays,
    )
