"""Whether a request carries a good signature (AWS Signature Version 4), by the vendor's library."""

import re

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.servers.file_server import Seen

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/s3/aws4_request, ?"
    r"SignedHeaders=(?P<names>[^,]+), ?Signature=(?P<signature>[0-9a-f]+)"
)


def is_signed(seen: Seen, key: str, secret: str) -> bool:
    """Tells whether its signature is that of this key, and covers every `x-amz-` header."""
    told = _AUTHORIZATION.fullmatch(seen.headers.get("authorization", ""))
    if told is None or told["key"] != key:
        return False
    names = told["names"].split(";")
    if not all(name in names for name in seen.headers if name.startswith("x-amz-")):
        return False
    request = AWSRequest(seen.method, f"http://{seen.headers['host']}{seen.path}")
    for name in names:
        request.headers[name] = seen.headers[name]
    request.context["timestamp"] = seen.headers["x-amz-date"]
    signer = S3SigV4Auth(Credentials(key, secret), "s3", told["region"])
    canonical = signer.canonical_request(request)
    return bool(signer.signature(signer.string_to_sign(request, canonical), request) == told[4])
