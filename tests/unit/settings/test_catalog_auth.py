"""The settings of catalog auth: what they take, and what they refuse in one line."""

import pytest

from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.wiring import WiringError, catalog_options
from tollgate.serve.settings import Settings, SettingsError, describe

KEY = "k" * 16


def test_severities_of_rules() -> None:
    settings = Settings.from_environment({"CATALOG_RULES": "R04=off, H04=error"})
    options = catalog_options(settings)
    assert options.severities == {"R04": None, "H04": Severity.ERROR}
    assert options.profile is Profile.DEFAULT


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("CATALOG_RULES", "R04", "is not written|has an item"),
        ("CATALOG_RULES", "R04=loud", "is not written"),
        ("CATALOG_RULES", "dangling=off", "is not written"),
        ("CATALOG_PROFILE", "harsh", "is not one of schema, default, strict, ceos, portolan"),
        ("CATALOG_PUBLIC_URL", "example.com", "is not an address"),
        ("CATALOG_PUBLIC_URL", "https://example.com/?a=b", "is not an address"),
        ("CATALOG_PUBLIC_URL", "https://user@example.com", "is not an address"),
        ("CATALOG_ORIGINS", "https://a.example/", "is no origin such as"),
        ("CATALOG_ORIGINS", "https://a.example,*", "is no origin such as"),
        ("CATALOG_TRUSTED_ORIGINS", "*", "is no origin such as"),
        ("CATALOG_TRUSTED_ORIGINS", "https://*.example", "is no origin such as"),
        ("CATALOG_SIGNING_KEYS", f"{KEY},short", "fewer than 16 characters"),
        ("CATALOG_DOCUMENT_BYTES_MAX", "10", "between 1024 and"),
        ("CATALOG_CRAWL_TIMEOUT", "never", "is not a duration"),
    ],
)
def test_a_bad_value_is_refused(name: str, value: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason) as refusal:
        Settings.from_environment({name: value})
    assert len(refusal.value.errors) == 1
    assert refusal.value.errors[0].startswith(f"{name}: ")


def test_keys_of_callers_are_not_shown() -> None:
    environment = {"CATALOG_SIGNING_KEYS": f"{KEY},{KEY}x"}
    assert Settings.from_environment(environment).catalog.signing_keys == (KEY, f"{KEY}x")
    (told,) = (each for each in describe(environment) if each.name == "CATALOG_SIGNING_KEYS")
    assert KEY not in told.value


def test_a_rule_that_is_not_there_is_refused_by_those_who_know_the_rules() -> None:
    settings = Settings.from_environment({"CATALOG_RULES": "R99=off"})
    with pytest.raises(WiringError, match=r"^CATALOG_RULES: there is no rule 'R99'$"):
        catalog_options(settings)


def test_a_public_address_has_no_slash_at_its_end() -> None:
    address = "https://example.com/catalog-auth"
    settings = Settings.from_environment({"CATALOG_PUBLIC_URL": f"{address}/"})
    assert settings.catalog.public_url == address


def test_origins_are_named_as_browsers_name_them() -> None:
    def origins(value: str) -> tuple[str, ...]:
        return Settings.from_environment({"CATALOG_ORIGINS": value}).catalog.origins

    assert Settings.from_environment({}).catalog.origins == ("*",)
    assert Settings.from_environment({}).catalog.trusted_origins == ()
    assert origins("") == ()
    assert origins("https://A.example, http://localhost:8000") == (
        "https://a.example",
        "http://localhost:8000",
    )
