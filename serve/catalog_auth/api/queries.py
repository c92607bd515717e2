"""The parameters in queries that say how to judge. One that is not known is refused, because a
misspelt one would be ignored."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tollgate.serve.catalog_auth.api.envelopes import Asked, severities_named, version_named
from tollgate.serve.catalog_auth.api.problems import ProblemCause, Unprocessable
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile

VERSION_PATTERN = r"^v?[0-9]+\.[0-9]+\.[0-9]+$"
RULES_LENGTH_MAX = 4_096


class QueryParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OptionsQuery(QueryParameters):
    """The options of a call."""

    profile: Profile | None = Field(None, description="Which rules run, and how bad they are.")
    version: str | None = Field(
        None,
        pattern=VERSION_PATTERN,
        description="The version to judge by, whatever the document declares.",
        examples=["v1.1.0"],
    )
    fail_on: Severity | None = Field(
        None, description="How bad a finding must be to make the document invalid."
    )
    rules: str | None = Field(
        None,
        max_length=RULES_LENGTH_MAX,
        description="Severities of single rules, as `R04=off,H04=error`.",
        examples=["R04=off"],
    )

    def asked(self) -> Asked:
        """The options. Raises Unprocessable."""
        version = None if self.version is None else version_named(self.version)
        severities = None if self.rules is None else severities_named(_pairs(self.rules))
        return Asked(self.profile, version, self.fail_on, severities)


class NoQuery(QueryParameters):
    """A call without parameters."""


class SchemeQuery(QueryParameters):
    """The one of the two calls of `/sign` to describe."""

    method: Literal["POST", "GET"] = Field(
        "POST", description="POST takes bucket and key, GET an href."
    )


def _pairs(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        rule, mark, word = part.partition("=")
        if not mark:
            told = f"{part[:40]!r} is not written RULE=severity"
            raise Unprocessable(
                "the severities of rules are not as they should be", [ProblemCause("rules", told)]
            )
        found[rule.strip()] = word.strip()
    return found
