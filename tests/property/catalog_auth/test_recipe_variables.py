"""No two things have the same variable, however they are called."""

import re
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from tollgate.serve.catalog_auth.resolve.recipes.variables import question
from tollgate.serve.catalog_auth.resolve.steps import Need

# (letters that the names of variables are joined with are among these)
NAMES = st.text("ab_-.AXx of@t2é", min_size=1, max_size=6) | st.text(min_size=1, max_size=3)
HOSTS = st.text("abxt02._-", min_size=1, max_size=8) | st.sampled_from(["a.at.b", "b", "ax2dxb"])
ORIGINS = st.builds(
    "{}://{}{}".format,
    st.sampled_from(["http", "https"]),
    HOSTS,
    st.sampled_from(["", ":80", ":443", ":8080"]),
)


@given(NAMES, NAMES, ORIGINS, NAMES, NAMES, ORIGINS)
def test_variables_are_the_same_only_for_the_same(
    scheme: str, name: str, origin: str, scheme2: str, name2: str, origin2: str
) -> None:
    one, other = Need(scheme, name), Need(scheme2, name2)
    first, second = question(one, origin).variable, question(other, origin2).variable
    assert (first == second) is ((one, place(origin)) == (other, place(origin2)))


@given(ORIGINS, ORIGINS)
def test_what_is_for_one_host_is_for_no_other(one: str, other: str) -> None:
    token = Need("login", "token")
    is_same = question(token, one).variable == question(token, other).variable
    assert is_same is (place(one) == place(other))


@given(NAMES, NAMES, ORIGINS)
def test_every_shell_and_python_can_have_it(scheme: str, name: str, origin: str) -> None:
    found = question(Need(scheme, name), origin)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", found.variable)
    assert found.asked.isprintable()


def place(origin: str) -> tuple[str, str, int]:
    parts = urlsplit(origin)
    usual = {"http": 80, "https": 443}[parts.scheme]
    return parts.scheme, str(parts.hostname), parts.port or usual
