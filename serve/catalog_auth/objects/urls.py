"""Object-store URLs to provider, bucket and key, and back (part D, Object URLs).

    s3://b/k                                      uri            the endpoint from storage:schemes
    gs://b/k   az://c/k   abfss://c@account…/k    uri
    https://b.s3.us-west-2.amazonaws.com/k        virtual-hosted dualstack, s3-region, legacy global
    https://s3.us-west-2.amazonaws.com/b/k        path
    https://ap-123456789012.s3-accesspoint…/k     access-point   the bucket is the point's ARN
    https://storage.googleapis.com/b/k            path           https://b.storage.googleapis.com/k
    https://account.blob.core.windows.net/c/k     path           the container is the bucket
    https://{bucket}.{region}.example.com/k       as `storage:schemes.*.platform` says
    https://b.example.com/k                       first-label    a guess

Percent-escapes are decoded once, after the URL was taken apart: `%252F` is the key's `%2F`, and a
`+` stays a plus. What follows `?` or `#` belongs to a call, not to the object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

from tollgate.serve.catalog_auth.objects.hosts import (
    Host,
    Provider,
    Style,
    access_point_host,
    known_host,
)
from tollgate.serve.catalog_auth.objects.storage_schemes import StorageScheme, storage_schemes_of

# Longer texts are not looked at.
URL_LENGTH_MAX = 8_192
URI_PROVIDERS = {
    **dict.fromkeys(("s3", "s3a", "s3n"), Provider.AWS),
    **dict.fromkeys(("gs", "gcs"), Provider.GOOGLE),
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "wasb", "wasbs"), Provider.AZURE),
}
_ARN_PREFIX = "arn:aws"


class Reason(StrEnum):
    """The reasons why a URL names no object."""

    NO_URL = "it is not an absolute URL"
    OTHER_SCHEME = "its scheme is neither http(s) nor that of an object store"
    HAS_USER = "it carries a user name or password"
    NO_BUCKET = "it names no bucket"
    NO_KEY = "it names a bucket, but no object in it"
    NOT_UTF8 = "its escapes are not UTF-8"
    WEBSITE = "it is a bucket's website, which serves without signatures"
    API_CALL = "it is a call of the store's API, not an object's own URL"
    NO_LABELS = "its host is a bare name or an address, which says nothing of a bucket"


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """An object. `bucket` is Azure's container, or an access point's ARN; `endpoint` is the store's
    URL without bucket and without a slash at its end, None when the URL does not tell it."""

    provider: Provider
    bucket: str
    key: str
    region: str | None
    endpoint: str | None
    style: Style

    @property
    def is_guess(self) -> bool:
        """Tells whether nothing better than the host's first label gave an answer."""
        return self.style is Style.FIRST_LABEL


@dataclass(frozen=True, slots=True)
class NotAnObject:
    reason: Reason


class _NoObjectError(Exception):
    def __init__(self, reason: Reason) -> None:
        self.reason = reason


def parse_object_url(
    href: str, storage_schemes: Mapping[str, object] | None = None
) -> ObjectLocation | NotAnObject:
    """The object that `href` means.

    `storage_schemes` is the document's map of that name, or the part of it that `storage:refs`
    name, in their order: it gives the endpoint of `s3://` and explains hosts of one's own.
    """
    try:
        url = _split(href)
        schemes = storage_schemes_of(storage_schemes)
        if url.scheme in URI_PROVIDERS:
            return _from_uri(url, schemes)
        if url.scheme in ("http", "https"):
            return _from_http(url, schemes)
        raise _NoObjectError(Reason.OTHER_SCHEME if url.scheme else Reason.NO_URL)
    except _NoObjectError as error:
        return NotAnObject(error.reason)


def object_url(location: ObjectLocation) -> str:
    """The URL of the location's own style: parsing it gives the location again, as long as what
    storage:schemes told is told again."""
    key = quoted(location.key)
    if location.style is Style.URI:
        return f"{_uri_origin(location)}/{key}"
    return f"{_http_origin(location)}/{key}"


def https_url(location: ObjectLocation) -> str | None:
    """A URL that HTTP clients can call; None for an Azure container of an unknown account."""
    if location.style is not Style.URI:
        return object_url(location)
    if location.endpoint is None:
        if location.provider is Provider.AZURE:
            return None
        host = "s3.amazonaws.com"
        if location.provider is Provider.GOOGLE:
            host = "storage.googleapis.com"
        elif location.region:
            host = f"s3.{location.region}.amazonaws.com"
        location = replace(location, endpoint=f"https://{host}")
    is_aws = location.provider is Provider.AWS
    if location.bucket.startswith(_ARN_PREFIX):
        style = Style.ACCESS_POINT
    elif is_aws and is_host_label(location.bucket):
        style = Style.VIRTUAL_HOSTED
    else:
        style = Style.PATH
    return object_url(replace(location, style=style))


def is_host_label(bucket: str) -> bool:
    """Tells whether a bucket's name can be the one label of a host that certificates allow for."""
    return bucket.isascii() and bucket.replace("-", "").isalnum() and bucket == bucket.lower()


def quoted(key: str) -> str:
    """A key inside a URL, escaped as signatures expect it: all but letters, digits and -._~/."""
    return quote(key, safe="/-._~")


def _split(href: str) -> SplitResult:
    if len(href) > URL_LENGTH_MAX or any(c < " " or c == "\x7f" for c in href):
        raise _NoObjectError(Reason.NO_URL)
    try:
        url = urlsplit(href.strip())
        if url.scheme in ("http", "https"):
            _ = url.port
    except ValueError:  # an address or a port that is none
        raise _NoObjectError(Reason.NO_URL) from None
    if url.scheme and not url.netloc:
        is_store = url.scheme in URI_PROVIDERS or url.scheme in ("http", "https")
        raise _NoObjectError(Reason.NO_BUCKET if is_store else Reason.OTHER_SCHEME)
    return url


def _from_uri(url: SplitResult, schemes: tuple[StorageScheme, ...]) -> ObjectLocation:
    provider = URI_PROVIDERS[url.scheme]
    if url.netloc.startswith(_ARN_PREFIX):
        return _from_arn(url)
    if "@" not in url.netloc:
        bucket, key = _decoded(url.netloc), _key(url.path)
        return _with_storage(provider, bucket, key, schemes)
    container, _, host = url.netloc.rpartition("@")
    if provider is not Provider.AZURE or ":" in container or not container:
        raise _NoObjectError(Reason.HAS_USER)
    endpoint = f"https://{host.lower()}"
    return ObjectLocation(provider, _decoded(container), _key(url.path), None, endpoint, Style.URI)


def _from_arn(url: SplitResult) -> ObjectLocation:
    """`s3://arn:aws:s3:us-west-2:123456789012:accesspoint/name/key`, as the AWS tools write it."""
    name, _, key = url.path[1:].partition("/")
    arn = f"{url.netloc}/{name}"
    host = access_point_host(arn)
    if host is None:
        raise _NoObjectError(Reason.NO_BUCKET)
    endpoint = f"https://{host.authority}"
    key = _key(f"/{key}")
    return ObjectLocation(Provider.AWS, arn, key, host.region, endpoint, Style.URI)


def _with_storage(
    provider: Provider, bucket: str, key: str, schemes: tuple[StorageScheme, ...]
) -> ObjectLocation:
    """The first storage scheme that can hold this bucket says where the store is."""
    location = ObjectLocation(provider, bucket, key, None, None, Style.URI)
    for scheme in schemes:
        endpoint = scheme.endpoint_for(provider, bucket)
        if endpoint is not None:
            host = known_host(endpoint.partition("://")[2])
            if provider is Provider.AWS and (host is None or host.provider is not Provider.AWS):
                provider = Provider.CUSTOM
            region = scheme.region or (host.region if host else None)
            return replace(location, provider=provider, region=region, endpoint=endpoint)
    return location


def _from_http(url: SplitResult, schemes: tuple[StorageScheme, ...]) -> ObjectLocation:
    if "@" in url.netloc:
        raise _NoObjectError(Reason.HAS_USER)
    authority = url.netloc.lower()
    host = known_host(authority)
    if host is None:
        return _from_platform(url, schemes) or _from_first_label(url)
    if host.is_website:
        raise _NoObjectError(Reason.WEBSITE)
    if host.provider is Provider.GOOGLE and url.path.startswith(("/storage/v1/", "/download/")):
        raise _NoObjectError(Reason.API_CALL)
    location = _at_host(url, host)
    if location.region is None:
        regions = (s.region for s in schemes if s.endpoint_for(host.provider, location.bucket))
        location = replace(location, region=next(regions, None))
    return location


def _at_host(url: SplitResult, host: Host) -> ObjectLocation:
    bucket, path = (host.bucket, url.path) if host.bucket else _first_segment(url.path)
    endpoint = f"{url.scheme}://{host.authority}"
    return ObjectLocation(host.provider, bucket, _key(path), host.region, endpoint, host.style)


def _from_platform(url: SplitResult, schemes: tuple[StorageScheme, ...]) -> ObjectLocation | None:
    """The first storage scheme whose platform this URL is at."""
    for scheme in schemes:
        place = scheme.place_of(url)
        if place is None:
            continue
        bucket, path = (place.bucket, place.path) if place.bucket else _first_segment(place.path)
        style = Style.VIRTUAL_HOSTED if place.is_bucket_in_host else Style.PATH
        return ObjectLocation(
            scheme.provider, bucket, _key(path), place.region, place.endpoint, style
        )
    return None


def _from_first_label(url: SplitResult) -> ObjectLocation:
    """Bucket from the host's first label, key from the path: the guess of clients in use."""
    bucket, _, rest = url.netloc.lower().partition(".")
    if not bucket or not rest or _is_address(url.hostname or ""):
        raise _NoObjectError(Reason.NO_LABELS)
    endpoint = f"{url.scheme}://{rest}"
    key = _key(url.path)
    return ObjectLocation(Provider.CUSTOM, bucket, key, None, endpoint, Style.FIRST_LABEL)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _first_segment(path: str) -> tuple[str, str]:
    bucket, _, rest = path[1:].partition("/")
    if not bucket:
        raise _NoObjectError(Reason.NO_BUCKET)
    return _decoded(bucket), f"/{rest}"


def _key(path: str) -> str:
    key = _decoded(path[1:])
    if not key:
        raise _NoObjectError(Reason.NO_KEY)
    return key


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise _NoObjectError(Reason.NOT_UTF8) from None


def _uri_origin(location: ObjectLocation) -> str:
    bucket = quote(location.bucket, safe=":/-._~$")
    if location.provider is Provider.GOOGLE:
        return f"gs://{bucket}"
    if location.provider is not Provider.AZURE:
        return f"s3://{bucket}"
    if location.endpoint is None:
        return f"az://{bucket}"
    return f"abfss://{bucket}@{location.endpoint.partition('://')[2]}"


def _http_origin(location: ObjectLocation) -> str:
    assert location.endpoint is not None, "a location that is no URI has an endpoint"
    scheme, _, authority = location.endpoint.partition("://")
    match location.style:
        case Style.VIRTUAL_HOSTED | Style.FIRST_LABEL:
            return f"{scheme}://{location.bucket}.{authority}"
        case Style.ACCESS_POINT:
            host = access_point_host(location.bucket)
            assert host is not None, "an access point's bucket is its ARN"
            return f"{scheme}://{host.label}.{authority}"
    return f"{location.endpoint}/{quote(location.bucket, safe='-._~$')}"
