"""S: what a scheme, a flow, a parameter and a list of references have to look like (part B2)."""

from serve.catalog_auth.document import Scheme
from serve.catalog_auth.findings import Severity, shown
from serve.catalog_auth.rule import Report, Rule, Subject

V1_1_0 = "https://stac-extensions.github.io/authentication/v1.1.0/schema.json"


def _type_is_text(scheme: Scheme, report: Report) -> None:
    value = scheme.value.get("type", "http")
    if not isinstance(value, str) or not value:
        report.add((*scheme.path, "type"), f"the type is {shown(value)}: it has to be a text")


RULES = (
    Rule(
        id="S05",
        name="type-not-nonempty-string",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        says="The type of a scheme is not a text with something in it.",
        why="Clients choose what to do by the type.",
        source="Specification B2: `type` (string) is required.",
        repair="Write a standard type, or the name of your own.",
        check=_type_is_text,
        example={
            "type": "Catalog",
            "stac_extensions": [V1_1_0],
            "links": [{"rel": "data", "href": "https://data.example.com/", "auth:refs": ["login"]}],
            "auth:schemes": {"login": {"type": ""}},
        },
    ),
)
