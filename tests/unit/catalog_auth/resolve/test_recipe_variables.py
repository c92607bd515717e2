"""The names of what a recipe asks for: readable, the same every time, and bound to a host."""

import pytest

from tollgate.serve.catalog_auth.resolve.recipes.variables import question
from tollgate.serve.catalog_auth.resolve.steps import Need


@pytest.mark.parametrize(
    ("scheme", "need", "url", "name"),
    [
        ("login", "token", "https://data.example.com/a", "TOKEN_of_LOGIN_at_DATA_EXAMPLE_COM"),
        ("login", "token", "https://data.example.com:443/a", "TOKEN_of_LOGIN_at_DATA_EXAMPLE_COM"),
        ("login", "token", "HTTPS://DATA.example.com", "TOKEN_of_LOGIN_at_DATA_EXAMPLE_COM"),
        ("login", "token", "https://data-example.com", "TOKEN_of_LOGIN_at_DATA__EXAMPLE_COM"),
        ("login", "token", "https://e.org:8443", "TOKEN_of_LOGIN_at_E_ORG_port_8443"),
        ("login", "token", "http://e.org", "TOKEN_of_LOGIN_at_E_ORG_over_http"),
        ("s", "x_key", "https://e.org", "X_KEY_of_S_at_E_ORG"),
        ("s", "x-key", "https://e.org", "X__KEY_of_S_at_E_ORG"),
        ("s", "X_KEY", "https://e.org", "X_KEYx0457be88_of_S_at_E_ORG"),
        ("2fa", "2nd", "https://e.org", "_2ND_of_2FA_at_E_ORG"),
        ("s", "k", "https://xn--bcher-kva.example", "K_of_S_at_XN____BCHER__KVA_EXAMPLE"),
        ("s", "k", "https://a_b.example", "K_of_S_at_Ax5fxB_EXAMPLE"),
        ("s", "k", "https://a-.b.example", "K_of_S_at_Ax2dxx2exB_EXAMPLE"),
        ("s", "k", "https://[::1]", "K_of_S_at_x3axx3ax1"),
    ],
)
def test_a_variable_says_what_it_is_and_where_it_goes(
    scheme: str, need: str, url: str, name: str
) -> None:
    assert question(Need(scheme, need), url).variable == name


def test_a_person_is_told_the_place() -> None:
    assert question(Need("s", "k"), "https://e.org/a").asked == '"s.k" for e.org'
    assert question(Need("s", "k"), "http://e.org:8080/a").asked == '"s.k" for http://e.org:8080'


def test_a_long_name_is_cut_and_told_apart() -> None:
    one, other = (question(Need("s" * 300 + end, "k"), "https://e.org").variable for end in "ab")
    assert one != other
    assert len(one) < 80
