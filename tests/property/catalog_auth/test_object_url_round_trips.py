"""A location's URL means the location again, in every style."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tollgate.serve.catalog_auth.objects.hosts import Provider, Style
from tollgate.serve.catalog_auth.objects.urls import (
    ObjectLocation,
    https_url,
    object_url,
    parse_object_url,
)

labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
buckets = st.lists(labels, min_size=1, max_size=3).map(".".join)
keys = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)
regions = st.sampled_from(["us-west-2", "eu-central-1", "us-gov-east-1", "ap-southeast-4"])
AMAZON = ("s3.{}", "s3-{}", "s3.dualstack.{}", "s3-fips.{}", "s3-fips.dualstack.{}")
STORES = {"own": {"platform": "https://objects.example.org"}}


@st.composite
def amazon(draw: st.DrawFn) -> ObjectLocation:
    region = draw(regions)
    endpoint = f"https://{draw(st.sampled_from(AMAZON)).format(region)}.amazonaws.com"
    style = draw(st.sampled_from([Style.PATH, Style.VIRTUAL_HOSTED]))
    return ObjectLocation(Provider.AWS, draw(buckets), draw(keys), region, endpoint, style)


@st.composite
def access_point(draw: st.DrawFn) -> ObjectLocation:
    region = draw(regions)
    partition = "aws-us-gov" if region.startswith("us-gov") else "aws"
    account = draw(st.from_regex(r"[0-9]{12}", fullmatch=True))
    arn = f"arn:{partition}:s3:{region}:{account}:accesspoint/{draw(labels)}"
    endpoint = f"https://s3-accesspoint.{region}.amazonaws.com"
    style = draw(st.sampled_from([Style.ACCESS_POINT, Style.URI]))
    return ObjectLocation(Provider.AWS, arn, draw(keys), region, endpoint, style)


@st.composite
def uri(draw: st.DrawFn) -> ObjectLocation:
    provider = draw(st.sampled_from([Provider.AWS, Provider.GOOGLE, Provider.AZURE]))
    endpoint = None
    if provider is Provider.AZURE and draw(st.booleans()):
        endpoint = f"https://{draw(labels)}.blob.core.windows.net"
    return ObjectLocation(provider, draw(buckets), draw(keys), None, endpoint, Style.URI)


@st.composite
def google_or_azure(draw: st.DrawFn) -> ObjectLocation:
    bucket, key = draw(buckets), draw(keys)
    if draw(st.booleans()):
        style = draw(st.sampled_from([Style.PATH, Style.VIRTUAL_HOSTED]))
        endpoint = "https://storage.googleapis.com"
        return ObjectLocation(Provider.GOOGLE, bucket, key, None, endpoint, style)
    endpoint = f"https://{draw(labels)}.blob.core.windows.net"
    return ObjectLocation(Provider.AZURE, bucket, key, None, endpoint, Style.PATH)


@st.composite
def own(draw: st.DrawFn) -> ObjectLocation:
    endpoint = "https://objects.example.org"
    style = draw(st.sampled_from([Style.PATH, Style.URI]))
    return ObjectLocation(Provider.CUSTOM, draw(buckets), draw(keys), None, endpoint, style)


@st.composite
def guess(draw: st.DrawFn) -> ObjectLocation:
    bucket, key = draw(labels), draw(keys)
    endpoint = "https://example.com"
    return ObjectLocation(Provider.CUSTOM, bucket, key, None, endpoint, Style.FIRST_LABEL)


locations = st.one_of(amazon(), access_point(), uri(), google_or_azure(), own(), guess())


@given(locations)
def test_the_url_of_a_location_means_it_again(location: ObjectLocation) -> None:
    assert parse_object_url(object_url(location), STORES if _is_own(location) else None) == location


@given(locations)
def test_the_http_url_of_a_location_means_the_same_object(location: ObjectLocation) -> None:
    url = https_url(location)
    if url is None:
        assert (location.provider, location.endpoint) == (Provider.AZURE, None)
        return
    found = parse_object_url(url, STORES if _is_own(location) else None)
    assert isinstance(found, ObjectLocation)
    same = replace(found, style=location.style, endpoint=location.endpoint, region=location.region)
    assert same == location


@given(st.text(max_size=60) | st.from_regex(r"(s3|https|gs|az)://[^ ]{0,40}", fullmatch=True))
def test_any_text_is_an_object_or_is_not(text: str) -> None:
    found = parse_object_url(text, STORES)
    if isinstance(found, ObjectLocation):
        assert found.bucket
        assert found.key
        assert parse_object_url(object_url(found), STORES) == found


def _is_own(location: ObjectLocation) -> bool:
    return location.endpoint == "https://objects.example.org"
