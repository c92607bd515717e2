"""Signed URLs for objects that configuration lists; nothing else is signed, ever.

listed      a bucket is signed for when it is listed, a key when one of the bucket's prefixes is
            its beginning; a key with `.` or `..` between slashes is not: some stores follow them
expiry      what was asked for, or the default, never less than a minute nor more than the
            maximum; counted from the clock that is handed in, in whole seconds
signature   AWS Signature Version 4 in the query (botocore), made here: no socket is opened
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from urllib.parse import urlsplit

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.catalog_auth.objects.hosts import Provider, Style
from tollgate.serve.catalog_auth.objects.urls import (
    ObjectLocation,
    https_url,
    is_host_label,
    object_url,
    parse_object_url,
)

DEFAULT_EXPIRY_S = 360
EXPIRY_MIN_S = 60
# Signature Version 4 signs for a week at most.
EXPIRY_MAX_S = 7 * 24 * 3600
# Amazon S3's longest key, in bytes of UTF-8.
KEY_BYTES_MAX = 1_024
_TIMESTAMP = "%Y%m%dT%H%M%SZ"


class SigningRefusal(StrEnum):
    """The reasons why nothing is signed."""

    NOT_AN_OBJECT = "the href is not an object's URL"
    BUCKET = "this bucket is not signed for"
    KEY = "this key is not signed for"
    BAD_KEY = "this is not the key of an object"
    ELSEWHERE = "the href is at another store than the bucket that is signed for"
    CREDENTIALS = "there are no credentials for this bucket"


@dataclass(frozen=True, slots=True)
class SigningCredentials:
    """Static keys; what is secret in them is in no text of theirs."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SignedBucket:
    """A bucket that is signed for. `key_prefixes` begin the keys that may be signed, "" all of
    them; `credentials` is a name in the configuration; `endpoint` is None at Amazon."""

    name: str
    key_prefixes: tuple[str, ...]
    credentials: str
    region: str = "us-east-1"
    endpoint: str | None = None
    is_bucket_in_host: bool = False
    is_requester_pays: bool = False


@dataclass(frozen=True, slots=True)
class SigningConfiguration:
    """The buckets to sign for, with what, for how long. Without buckets, nothing is signed."""

    buckets: tuple[SignedBucket, ...] = ()
    credentials: Mapping[str, SigningCredentials] = field(default_factory=dict)
    default_expiry_s: int = DEFAULT_EXPIRY_S
    expiry_max_s: int = 3_600

    def __post_init__(self) -> None:
        names = [bucket.name for bucket in self.buckets]
        assert len(set(names)) == len(names), "a bucket is listed once"
        assert EXPIRY_MIN_S <= self.default_expiry_s <= self.expiry_max_s <= EXPIRY_MAX_S


@dataclass(frozen=True, slots=True)
class SignedUrl:
    """A URL that anybody may fetch until `expires`. `caller_id` is the third party's own
    identifier, for metrics; the URL does not hold it."""

    url: str = field(repr=False)
    expires: datetime
    caller_id: str | None = None


class Signer:
    """Signs GET requests for the objects that configuration allows."""

    def __init__(self, configuration: SigningConfiguration, clock: Clock) -> None:
        self._configuration = configuration
        self._clock = clock
        self._buckets = {bucket.name: bucket for bucket in configuration.buckets}
        self._stores: dict[str, object] = {
            bucket.name: {
                "type": "custom-s3",
                "platform": _platform(bucket),
                "bucket": bucket.name,
            }
            for bucket in configuration.buckets
            if bucket.endpoint is not None
        }

    def sign(
        self, bucket: str, key: str, duration_s: int | None = None, caller_id: str | None = None
    ) -> SignedUrl | SigningRefusal:
        """A URL for this object; `duration_s` is clamped."""
        listed = self._buckets.get(bucket)
        if listed is None:
            return SigningRefusal.BUCKET
        if not _is_key(key):
            return SigningRefusal.BAD_KEY
        if not key.startswith(listed.key_prefixes):
            return SigningRefusal.KEY
        credentials = self._configuration.credentials.get(listed.credentials)
        if credentials is None:
            return SigningRefusal.CREDENTIALS
        now_s = int(self._clock.now_s())
        expiry_s = self._clamped(duration_s)
        url = _signed_url(listed, key, credentials, now_s, expiry_s)
        return SignedUrl(url, datetime.fromtimestamp(now_s + expiry_s, UTC), caller_id)

    def sign_href(
        self, href: str, duration_minutes: int | None = None, caller_id: str | None = None
    ) -> SignedUrl | SigningRefusal:
        """A URL for the object that this href means, however it is written."""
        location = parse_object_url(href, self._stores)
        if not isinstance(location, ObjectLocation):
            return SigningRefusal.NOT_AN_OBJECT
        listed = self._buckets.get(location.bucket)
        if listed is None:
            return SigningRefusal.BUCKET
        if not _is_at(location, listed):
            return SigningRefusal.ELSEWHERE
        duration_s = None if duration_minutes is None else duration_minutes * 60
        return self.sign(location.bucket, location.key, duration_s, caller_id)

    def _clamped(self, duration_s: int | None) -> int:
        if duration_s is None:
            return self._configuration.default_expiry_s
        return max(EXPIRY_MIN_S, min(duration_s, self._configuration.expiry_max_s))


class _AtTime(S3SigV4QueryAuth):  # type: ignore[misc]  # (published without types)
    """botocore's signature, made at a moment that is handed in instead of read off a clock."""

    def __init__(
        self, credentials: SigningCredentials, region: str, now_s: int, expiry_s: int
    ) -> None:
        keys = Credentials(
            credentials.access_key_id, credentials.secret_access_key, credentials.session_token
        )
        super().__init__(keys, "s3", region, expires=expiry_s)
        self._timestamp = datetime.fromtimestamp(now_s, UTC).strftime(_TIMESTAMP)

    def add_auth(self, request: AWSRequest) -> None:
        request.context["timestamp"] = self._timestamp
        self._modify_request_before_signing(request)
        text = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(text, request))


def signed_url_scheme(base_url: str) -> dict[str, object]:
    """The ready-made `signedUrl` scheme for `/sign` below `base_url`: one flow for each of
    its calls (part D, Signing)."""
    api = f"{base_url.rstrip('/')}/sign"
    return {
        "type": "signedUrl",
        "description": "Signs URLs of objects; the signed URL is fetched without further headers.",
        "flows": {
            "object": {
                "method": "POST",
                "authorizationApi": api,
                "parameters": {
                    "bucket": _parameter("body", True, "string", "The object's bucket"),
                    "key": _parameter("body", True, "string", "The object's key"),
                },
                "responseField": "signed_url",
            },
            "href": {
                "method": "GET",
                "authorizationApi": api,
                "parameters": {
                    "href": _parameter("query", True, "string", "The object's URL"),
                    "duration": _parameter("query", False, "integer", "Minutes of validity"),
                    "_id": _parameter("query", False, "string", "Your identifier, for metrics"),
                },
                "responseField": "href",
            },
        },
    }


def _parameter(where: str, is_required: bool, type_: str, description: str) -> dict[str, object]:
    return {
        "in": where,
        "required": is_required,
        "description": description,
        "schema": {"type": type_},
    }


def _platform(bucket: SignedBucket) -> str:
    """The bucket's store as a storage scheme's platform."""
    scheme, _, rest = (bucket.endpoint or "").partition("://")
    return f"{scheme}://{{bucket}}.{rest}" if bucket.is_bucket_in_host else f"{scheme}://{rest}"


def _is_key(key: str) -> bool:
    if not key or any(c < " " or c == "\x7f" for c in key):
        return False
    try:
        is_short = len(key.encode()) <= KEY_BYTES_MAX
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return is_short and not {".", ".."} & set(key.split("/"))


def _is_at(location: ObjectLocation, bucket: SignedBucket) -> bool:
    """Tells whether the location is at the bucket's own store; `s3://` tells of none but a name."""
    if location.provider not in (Provider.AWS, Provider.CUSTOM):
        return False
    if location.endpoint is None:
        return True
    if bucket.endpoint is None:
        return location.provider is Provider.AWS and location.region in (None, bucket.region)
    return urlsplit(location.endpoint).netloc == urlsplit(bucket.endpoint).netloc.lower()


def _signed_url(
    bucket: SignedBucket, key: str, credentials: SigningCredentials, now_s: int, expiry_s: int
) -> str:
    request = AWSRequest("GET", _plain_url(bucket, key))
    if bucket.is_requester_pays:
        request.params = {"x-amz-request-payer": "requester"}
    _AtTime(credentials, bucket.region, now_s, expiry_s).add_auth(request)
    url = request.url
    assert isinstance(url, str), "botocore puts the signature into the URL"
    return url


def _plain_url(bucket: SignedBucket, key: str) -> str:
    if bucket.endpoint is None:
        location = ObjectLocation(Provider.AWS, bucket.name, key, bucket.region, None, Style.URI)
        url = https_url(location)
        assert url is not None, "Amazon's hosts follow from the region"
        return url
    in_host = bucket.is_bucket_in_host and is_host_label(bucket.name)
    style = Style.VIRTUAL_HOSTED if in_host else Style.PATH
    endpoint = bucket.endpoint.rstrip("/")
    return object_url(
        ObjectLocation(Provider.CUSTOM, bucket.name, key, bucket.region, endpoint, style)
    )
