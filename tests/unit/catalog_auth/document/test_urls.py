"""URLs as the rules look at them."""

import pytest

from tollgate.serve.catalog_auth.document.urls import (
    ORIGIN_LENGTH_MAX,
    URL_LENGTH_MAX,
    host_of,
    http_url,
    is_placeholder,
    origin_of,
    query_items,
    query_of,
    scheme_of,
    shown_url,
    user_of,
    without_parameters,
)


@pytest.mark.parametrize(
    "text",
    ["https://e.org", "http://e.org:80/a?b#c", "HTTPS://E.ORG/", "https://[::1]/", "https://ü.de/"],
)
def test_absolute_urls_have_a_host(text: str) -> None:
    url = http_url(text)
    assert url is not None
    assert url.hostname


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "e.org/a",
            "/a",
            "//e.org/a",
            "ftp://e.org/",
            "https:e.org",
            "https://",
            "https:///a",
        ),
        *("https://e.org:x/", "https://e.org:99999/", "https://[::1/", "https://{host}/a"),
        *("https://e.org/a b", "https://e.org/\n", "<https://e.org>", "https://e.org/{id}"),
        f"https://e.org/{'a' * URL_LENGTH_MAX}",
        f"https://{'a' * 254}/",
    ],
)
def test_what_is_no_absolute_url(text: str) -> None:
    assert http_url(text) is None


@pytest.mark.parametrize(
    ("href", "scheme", "host"),
    [
        ("https://E.org:8443/a", "https", "e.org"),
        ("https://u:p@e.org/a", "https", "e.org"),
        ("FTP://e.org", "ftp", "e.org"),
        ("https://[2001:DB8::1]:1/a", "https", "2001:db8::1"),
        ("s3://bucket/a", "s3", None),
        ("file:///a", "file", None),
        ("mailto:a@e.org", "mailto", None),
        ("C:\\a", "", None),
        ("a/b:c", "", None),
        ("./a", "", None),
        ("//e.org/a", "", None),
        ("https:///a", "https", None),
        (f"https://{'a' * ORIGIN_LENGTH_MAX}/", "https", None),
    ],
)
def test_scheme_and_host_of_an_href(href: str, scheme: str, host: str | None) -> None:
    assert scheme_of(href) == scheme
    assert host_of(origin_of(href)) == host


@pytest.mark.parametrize(
    ("href", "user"),
    [
        ("https://u:p@e.org/", "u:p"),
        ("https://token@e.org/", "token"),
        ("https://a@b:c@e.org/", "a@b:c"),
        ("sftp://u:p@e.org/", "u:p"),
        ("sftp://u@e.org/", None),
        ("https://@e.org/", None),
        ("https://e.org/@a", None),
        ("abfss://container@account.dfs.core.windows.net/", None),
    ],
)
def test_users_that_nobody_should_publish(href: str, user: str | None) -> None:
    assert user_of(origin_of(href)) == user


def test_a_query_is_read_as_it_is_written() -> None:
    query = query_of("https://e.org/a?x%5F=1%202&y&=z&x_=3#k=v?l=w")
    assert query == "x%5F=1%202&y&=z&x_=3"
    assert list(query_items(query)) == [("x_", "1%202"), ("y", ""), ("x_", "3")]


@pytest.mark.parametrize(
    ("href", "rest"),
    [
        ("https://e.org/a?k=1", "https://e.org/a"),
        ("https://e.org/a?b=%20&k=1&c", "https://e.org/a?b=%20&c"),
        ("https://e.org/a?%6b=1#k=1", "https://e.org/a#k=1"),
        ("https://e.org/a?kk=1", "https://e.org/a?kk=1"),
    ],
)
def test_parameters_go_and_everything_else_stays(href: str, rest: str) -> None:
    assert without_parameters(href, frozenset({"k"})) == rest


@pytest.mark.parametrize(
    "value",
    [
        *(
            "{token}",
            "${TOKEN}",
            "$TOKEN",
            "<token>",
            "%3Ctoken%3E",
            "%7Btoken%7D",
            "[key]",
            ":key",
        ),
        *("YOUR_TOKEN", "your-api-key", "my_key", "xxxxxxxx", "***", "...", "changeme", "example"),
        *("api_key", "access_token", "REPLACE_ME_please", "null", "insert key here"),
    ],
)
def test_values_that_wait_for_another(value: str) -> None:
    assert is_placeholder(value)


@pytest.mark.parametrize("value", ["pk.abcdef", "d41d8cd98f00b204", "hunter2", "x" * 90 + "1" * 20])
def test_values_that_are_one(value: str) -> None:
    assert not is_placeholder(value)


def test_what_is_shown_of_a_url_is_no_secret() -> None:
    assert shown_url("https://u:p@e.org:1/a?b=c#d") == '"https://e.org:1/a?…"'
    assert shown_url("s3://b/k#d") == '"s3://b/k"'
