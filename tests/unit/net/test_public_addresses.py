"""Which hosts everybody may reach, and whose they are."""

import pytest

from tollgate.serve.catalog_auth.rules.exposure.addresses import registrable_domain
from tollgate.serve.net.public_addresses import Exposure, exposure_of, network_of


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "a.localhost", "localhost.", "127.0.0.1", "127.1", "2130706433"),
        *("0x7f.1", "0177.0.0.1", "::1", "::ffff:127.0.0.1"),
    ],
)
def test_loopback_in_any_clothes(host: str) -> None:
    assert exposure_of(host) is Exposure.LOOPBACK


@pytest.mark.parametrize(
    "host",
    [
        *("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.1.1", "0.0.0.0"),
        *("fe80::1", "fe80::1%eth0", "fd12::1", "::ffff:10.0.0.1", "3232235521"),
        *("nas", "db.internal", "printer.local", "x.home.arpa", "a.corp"),
    ],
)
def test_private_hosts_are_told_apart(host: str) -> None:
    assert exposure_of(host) is Exposure.PRIVATE


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "metadata.google.internal", "fd00:ec2::254", "100.100.100.200"]
)
def test_metadata_services_are_told_apart(host: str) -> None:
    assert exposure_of(host) is Exposure.METADATA


@pytest.mark.parametrize(
    "host",
    [
        *("example.com", "8.8.8.8", "2606:4700::1111", "stac.dataspace.copernicus.test"),
        *("127.0.0.1.example.com", "1.2.3.4.5", "300.300.300.300", "local.example", "", "9" * 300),
        "999999999999999.example",
    ],
)
def test_public_hosts_expose_nothing(host: str) -> None:
    expected = Exposure.PRIVATE if host == "9" * 300 else None  # (one label, whatever it is)
    assert exposure_of(host) is expected


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("zipper.dataspace.copernicus.eu", "copernicus.eu"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("one.github.io", "one.github.io"),
        ("github.io", "github.io"),
        ("EXAMPLE.com", "example.com"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("localhost", "localhost"),
    ],
)
def test_where_an_owners_names_end(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("2001:DB8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::1", "2001:db8:0:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unknown", "unknown"),
        ("9" * 64, "9" * 64),
    ],
)
def test_callers_are_counted_by_what_one_of_them_has(address: str, network: str) -> None:
    assert network_of(address) == network
