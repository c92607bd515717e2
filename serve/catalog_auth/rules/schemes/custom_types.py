"""C: types of schemes that are none of the standard ones (part C)."""

from tollgate.serve.catalog_auth.document.document import Scheme
from tollgate.serve.catalog_auth.document.fields import FIELDS_BY_TYPE, TYPED_FIELDS
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.registries.scheme_types import (
    REMOVED,
    is_spelled_alike,
    standard_meant,
)
from tollgate.serve.catalog_auth.rules.examples.items import protected_item
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, Suggestion, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject


def _is_no_near_miss(scheme: Scheme, report: FindingReport) -> None:
    if not scheme.type or scheme.type in FIELDS_BY_TYPE:
        return
    meant = standard_meant(scheme.type)
    if meant is None:
        return
    path = (*scheme.path, "type")
    suggestions: tuple[Suggestion, ...] = ()
    if is_spelled_alike(scheme.type, meant) and scheme.value.keys() >= set(FIELDS_BY_TYPE[meant]):
        suggestions = suggestion(f"write {meant}", Operation("replace", path, meant))
    # With the standard type's own fields there is no doubt left what was meant.
    is_certain = any(field in scheme.value for field in FIELDS_BY_TYPE[meant])
    report.add(
        path,
        f"{shown(scheme.type)} is a type of its own as it is written: {meant} is the standard one",
        severity=Severity.ERROR if is_certain else None,
        suggestions=suggestions,
    )


def _has_no_reserved_fields(scheme: Scheme, report: FindingReport) -> None:
    type_ = scheme.type
    if not type_ or type_ in FIELDS_BY_TYPE or _is_first_version(report):
        return
    fields = [field for field in TYPED_FIELDS if field in scheme.value]
    if not fields or standard_meant(type_) is not None:
        return
    hint = f"; better, describe it as {REMOVED[type_]}" if type_ in REMOVED else ""
    report.add(
        scheme.path,
        f"a type of your own, such as {shown(type_)}, cannot have {', '.join(fields)}: any other "
        f"name is free{hint}",
    )


def _can_be_executed(scheme: Scheme, report: FindingReport) -> None:
    type_ = scheme.type
    if (
        not type_
        or type_ in FIELDS_BY_TYPE
        or type_ in REMOVED
        or standard_meant(type_) is not None
    ):
        return
    report.add(
        (*scheme.path, "type"), f"{shown(type_)} is a type of your own: no general client can do it"
    )


def _was_not_removed(scheme: Scheme, report: FindingReport) -> None:
    type_ = scheme.type
    if type_ is None or type_ not in REMOVED or _is_first_version(report):
        return
    if any(field in scheme.value for field in TYPED_FIELDS):
        return  # (C02 says it together with what the fields are)
    report.add(
        (*scheme.path, "type"),
        f"{type_} is predefined no more since v1.1.0: describe it as {REMOVED[type_]}",
    )


def _is_first_version(report: FindingReport) -> bool:
    """Tells whether it is v1.0.0, which has the removed types and no rules for fields."""
    return report.document.version is Version.V1_0_0


RULES = (
    CatalogRule(
        id="C01",
        name="type-nearly-standard",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        says="The type is nearly a standard one.",
        why="Types are compared to the letter: clients take it for one that they do not know.",
        source="Authentication extension, Scheme Types.",
        repair="Write the standard type.",
        check=_is_no_near_miss,
        example=protected_item({"type": "S3"}, "s3://bucket/scene.tif"),
    ),
    CatalogRule(
        id="C02",
        name="custom-type-with-standard-fields",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        says="A type of one's own uses the fields of standard types.",
        why="The schema forbids them there, so that they keep one meaning.",
        source=(
            "catalog-auth.md, B2: a custom type cannot reuse name, in, scheme, flows "
            "or openIdConnectUrl."
        ),
        repair="Rename the fields, or use the standard type.",
        check=_has_no_reserved_fields,
        example=protected_item({"type": "com.example.login", "name": "X-Login"}),
    ),
    CatalogRule(
        id="C03",
        name="custom-type",
        severity=Severity.INFO,
        subject=Subject.SCHEME,
        says="The type is one of the publisher's own.",
        why="Clients that do not know it can show the description, and no more.",
        source="Authentication extension, Scheme Types: custom types are allowed.",
        repair="Nothing, when your readers know it; else offer a standard scheme as well.",
        check=_can_be_executed,
        example=protected_item(
            {"type": "com.example.mtls", "description": "Ask for a certificate."}
        ),
    ),
    CatalogRule(
        id="C04",
        name="type-removed",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        says="The type was predefined in v1.0.0 and is so no more.",
        why="To a client of today it is a type that it does not know.",
        source="catalog-auth.md, B3: planetaryComputer and earthdata were removed in v1.1.0.",
        repair="Describe it with standard types.",
        check=_was_not_removed,
        example=protected_item({"type": "planetaryComputer"}),
    ),
)
