"""The hosts of the big object stores: what a host says of bucket, region and addressing.

Sources: Amazon S3's "Methods for accessing a bucket" and endpoint tables (virtual-hosted, path,
dualstack, FIPS, accelerate, express, access points, the legacy dash before the region), Google
Cloud Storage's "Request endpoints", Azure Storage's account endpoints of its clouds.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class Provider(StrEnum):
    """Whose object store it is; CUSTOM speaks S3 at an endpoint of its own."""

    AWS = "aws"
    GOOGLE = "google"
    AZURE = "azure"
    CUSTOM = "custom"


class Style(StrEnum):
    """The ways in which a URL carries bucket and key."""

    URI = "uri"
    VIRTUAL_HOSTED = "virtual-hosted"
    PATH = "path"
    ACCESS_POINT = "access-point"
    FIRST_LABEL = "first-label"


@dataclass(frozen=True, slots=True)
class Host:
    """A known host. `authority` is the store's own, without a bucket; `label` is what stands before
    it, `bucket` what that label means (None: the bucket is in the path)."""

    provider: Provider
    style: Style
    authority: str
    label: str | None = None
    bucket: str | None = None
    region: str | None = None
    is_website: bool = False


_REGION = r"(?P<region>[a-z]{2,4}(?:-[a-z]+)+-\d+)"
_AMAZON = r"\.amazonaws\.com(?:\.cn)?"
_S3 = re.compile(
    rf"(?:(?P<bucket>.+)\.)?(?P<store>s3(?:-fips|-accelerate|-external-1|express-[a-z0-9-]+)?"
    rf"(?:\.dualstack)?(?:[.-]{_REGION})?{_AMAZON})"
)
_S3_WEBSITE = re.compile(rf"(?P<bucket>.+)\.s3-website[.-]{_REGION}{_AMAZON}")
_ACCESS_POINT = re.compile(
    rf"(?P<label>(?P<name>[a-z0-9-]+)-(?P<account>\d{{12}}))\."
    rf"(?P<store>s3-accesspoint(?:-fips)?(?:\.dualstack)?\.{_REGION}{_AMAZON})"
)
_ARN = re.compile(
    rf"arn:(?P<partition>aws(?:-[a-z]+)*):s3:{_REGION}:(?P<account>\d{{12}}):"
    r"accesspoint/(?P<name>[a-z0-9-]+)"
)
_GOOGLE = re.compile(
    r"(?:(?P<bucket>.+)\.)?(?P<store>(?:storage|commondatastorage)\.googleapis\.com)"
    r"|(?P<browser>storage\.cloud\.google\.com)"
)
_AZURE = re.compile(
    r"[a-z0-9-]+\.(?:z\d+\.)?(?:blob|dfs)\."
    r"(?:core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)|storage\.azure\.net)"
)
# The region of the endpoints that name none but belong to one.
_EXTERNAL = ("s3-external-1.", "us-east-1")


def known_host(authority: str) -> Host | None:
    """The store of a lower-case `host[:port]`, when it is a big one."""
    if authority.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return _amazon_host(authority)
    if found := _GOOGLE.fullmatch(authority):
        store = found["store"] or found["browser"]
        return _host(Provider.GOOGLE, store, found["bucket"], None)
    if _AZURE.fullmatch(authority):
        return Host(Provider.AZURE, Style.PATH, authority)
    return None


def access_point_host(arn: str) -> Host | None:
    """The host of an access point's ARN; None when it is not such an ARN."""
    found = _ARN.fullmatch(arn)
    if found is None:
        return None
    suffix = "amazonaws.com.cn" if found["partition"] == "aws-cn" else "amazonaws.com"
    return Host(
        Provider.AWS,
        Style.ACCESS_POINT,
        f"s3-accesspoint.{found['region']}.{suffix}",
        f"{found['name']}-{found['account']}",
        arn,
        found["region"],
    )


def _amazon_host(authority: str) -> Host | None:
    if found := _ACCESS_POINT.fullmatch(authority):
        return _access_point(found)
    if found := _S3_WEBSITE.fullmatch(authority):
        return Host(
            Provider.AWS, Style.VIRTUAL_HOSTED, authority, None, found["bucket"], is_website=True
        )
    found = _S3.fullmatch(authority)
    if found is None:
        return None
    region = found["region"]
    if found["store"].startswith(_EXTERNAL[0]):
        region = _EXTERNAL[1]
    return _host(Provider.AWS, found["store"], found["bucket"], region)


def _access_point(found: re.Match[str]) -> Host:
    region = found["region"]
    partition = "aws"
    if found["store"].endswith(".cn"):
        partition = "aws-cn"
    elif region.startswith("us-gov-"):
        partition = "aws-us-gov"
    arn = f"arn:{partition}:s3:{region}:{found['account']}:accesspoint/{found['name']}"
    return Host(Provider.AWS, Style.ACCESS_POINT, found["store"], found["label"], arn, region)


def _host(provider: Provider, store: str, bucket: str | None, region: str | None) -> Host:
    style = Style.VIRTUAL_HOSTED if bucket else Style.PATH
    return Host(provider, style, store, bucket, bucket, region)
