"""S: what a scheme and a list of references have to look like (part B2)."""

from tollgate.serve.catalog_auth.document.document import (
    REFS,
    Document,
    Scheme,
    flows_of,
    inputs_of,
)
from tollgate.serve.catalog_auth.document.fields import FIELDS_BY_TYPE, TYPED_FIELDS, is_string_list
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.registries.scheme_types import standard_meant
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, SCENE, item, scene
from tollgate.serve.catalog_auth.rules.findings import (
    Fix,
    Operation,
    Severity,
    Suggestion,
    suggestion,
)
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject

# Names that mean something to the languages that documents are read with.
_LANGUAGE_NAMES = ("__proto__", "constructor", "prototype")
_SIGNED_FLOW_TEXTS = ("method", "authorizationApi", "responseField")
_OAUTH2_FLOW_TEXTS = ("authorizationUrl", "tokenUrl", "refreshUrl", "subjectTokenType")


def _schemes_are_objects(document: Document, report: FindingReport) -> None:
    schemes = document.schemes_value
    if not isinstance(schemes, dict) or len(document.schemes) == len(schemes):
        return
    for name, value in schemes.items():
        if not isinstance(value, dict):
            report.add(
                (*document.schemes_path, name),
                f"the scheme {shown(name)} is {shown(value)}: it has to be an object with a type",
            )


def _type_is_there(scheme: Scheme, report: FindingReport) -> None:
    if "type" in scheme.value:
        return
    meant = _type_by_fields(scheme)
    fix: Fix | None = None
    hint = "write what kind of scheme it is"
    if meant is not None:
        fix = (Operation("add", (*scheme.path, "type"), meant),)
        hint = f"from its fields it is {meant}"
    report.add((*scheme.path, "type"), f"the scheme {shown(scheme.name)} has no type: {hint}", fix)


def _type_by_fields(scheme: Scheme) -> str | None:
    """The one type that has just these fields; flows tell theirs by what is in them."""
    fields = [field for field in TYPED_FIELDS if field in scheme.value]
    if fields == ["flows"]:
        flows = flows_of(scheme)
        if flows and all("authorizationApi" in flow.value for flow in flows):
            return "signedUrl"
        if flows and all("scopes" in flow.value for flow in flows):
            return "oauth2"
        return None
    for type_, own in FIELDS_BY_TYPE.items():
        if own and sorted(own) == sorted(fields):
            return type_
    return None


def _type_is_text(scheme: Scheme, report: FindingReport) -> None:
    value = scheme.value.get("type", "http")
    is_taken = value == "" or report.profile is Profile.SCHEMA
    if not isinstance(value, str) or not value:
        report.add(
            (*scheme.path, "type"),
            f"the type of {shown(scheme.name)} is {shown(value)}: it has to be a text, one of "
            f"{', '.join(FIELDS_BY_TYPE)} or the name of your own",
            # (the schema of v1.0.0 looks into no scheme; clients cannot use this one all the same)
            severity=Severity.WARNING if _is_first(report) and is_taken else None,
        )


def _is_first(report: FindingReport) -> bool:
    return report.document.version is Version.V1_0_0


def _own_fields_are_there(scheme: Scheme, report: FindingReport) -> None:
    type_ = scheme.type or ""
    for field in FIELDS_BY_TYPE[type_]:
        if field not in scheme.value:
            report.add(
                (*scheme.path, field),
                f"the scheme {shown(scheme.name)} is of type {type_} and has no {field}",
            )
    # The rest of the world learns this from R13, which says more; the schema says this.
    flows = scheme.value.get("flows")
    is_exchange = type_ == "oauth2" and isinstance(flows, dict) and "tokenExchange" in flows
    if (
        report.profile is Profile.SCHEMA
        and is_exchange
        and report.document.version is Version.V1_2_0
        and not inputs_of(scheme)
    ):
        report.add(
            (*scheme.path, REFS),
            f"the token exchange {shown(scheme.name)} has no {REFS} of its own",
        )


def _other_fields_are_not(scheme: Scheme, report: FindingReport) -> None:
    type_ = scheme.type
    if type_ is None:
        return
    own = FIELDS_BY_TYPE.get(type_, ())
    is_misspelled = standard_meant(type_) is not None
    for field in TYPED_FIELDS:
        if field in scheme.value and field not in own:
            owners = [name for name, fields in FIELDS_BY_TYPE.items() if field in fields]
            report.add(
                (*scheme.path, field),
                f"{field} belongs to type {' or '.join(owners)} alone; the scheme "
                f"{shown(scheme.name)} is of type {shown(type_)}",
                # (with the type spelled right, the field may well be in its place)
                suggestions=() if is_misspelled else _ways_out(scheme, field),
            )


def _ways_out(scheme: Scheme, field: str) -> tuple[Suggestion, ...]:
    """The type that all fields fit, if there is one, or to do without the field: only the author
    knows which is wrong, the type or the field."""
    found: tuple[Suggestion, ...] = ()
    if (type_ := _type_by_fields(scheme)) is not None and type_ != scheme.type:
        found = suggestion(
            f"make it a scheme of type {type_}", Operation("replace", (*scheme.path, "type"), type_)
        )
    return (
        *found,
        *suggestion(f"remove {field}, and its value", Operation("remove", (*scheme.path, field))),
    )


def _values_have_their_types(document: Document, report: FindingReport) -> None:
    for place in document.misshapen:
        if place.path:
            report.add(
                place.path,
                f"{shown(place.path[-1])} has to be an {place.expected}, not {shown(place.value)}",
            )
    for scheme in document.schemes:
        value = scheme.value
        type_ = scheme.type or ""
        _are_texts(scheme.path, value, ("description",), report)
        if type_ not in FIELDS_BY_TYPE:
            continue
        fields = FIELDS_BY_TYPE[type_]
        if fields != ("flows",):
            _are_texts(scheme.path, value, fields, report)
            continue
        if "flows" in value and not isinstance(value["flows"], dict):
            report.add(
                (*scheme.path, "flows"),
                f"flows has to be an object, each flow under its key, not {shown(value['flows'])}",
            )
        texts = _OAUTH2_FLOW_TEXTS if type_ == "oauth2" else _SIGNED_FLOW_TEXTS
        for flow in flows_of(scheme):
            _are_texts(flow.path, flow.value, texts, report)


def _are_texts(path: Path, value: object, names: tuple[str, ...], report: FindingReport) -> None:
    assert isinstance(value, dict)
    for name in names:
        if name in value and not isinstance(value[name], str):
            report.add((*path, name), f"{name} has to be a text, not {shown(value[name])}")


def _references_are_names(document: Document, report: FindingReport) -> None:
    wrong = [(holder.path, holder.refs) for holder in document.malformed]
    wrong += [
        (scheme.path, scheme.value[REFS])
        for scheme in document.schemes
        if REFS in scheme.value and not is_string_list(scheme.value[REFS])
    ]
    for path, value in wrong:
        fix = (Operation("replace", (*path, REFS), [value]),) if isinstance(value, str) else None
        report.add(
            (*path, REFS),
            f"{REFS} has to be a list of names of schemes, not {shown(value)}"
            if not isinstance(value, list)
            else f"{REFS} has to hold names of schemes alone, not {shown(_first_no_text(value))}",
            fix,
        )


def _first_no_text(values: list[object]) -> object:
    return next(value for value in values if not isinstance(value, str))


def _names_are_safe(document: Document, report: FindingReport) -> None:
    if not isinstance(document.schemes_value, dict):
        return
    for name in document.schemes_value:
        if name.isprintable() and name and name not in _LANGUAGE_NAMES:
            continue
        path = (*document.schemes_path, name)
        if "\n" in name or "\r" in name:
            report.add(path, f"the name of the scheme {shown(name)} has a line break in it")
        elif not name:
            report.add(path, "a scheme has the empty name", severity=Severity.WARNING)
        elif name in _LANGUAGE_NAMES:
            report.add(
                path,
                f"the name {shown(name)} has a meaning of its own in JavaScript, where such a "
                "scheme is lost or does harm",
                severity=Severity.WARNING,
            )
        else:
            report.add(
                path,
                f"the name of the scheme {shown(name)} has characters that cannot be seen",
                severity=Severity.WARNING,
            )


RULES = (
    CatalogRule(
        id="S03",
        name="scheme-not-object",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="A scheme is no object.",
        why="It has no type, so no client knows what to do.",
        source="Authentication extension, Authentication Scheme Object.",
        repair='Write an object with a type, such as {"type": "s3"}.',
        check=_schemes_are_objects,
        example=item({"login": "oauth2"}),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S04",
        name="type-missing",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        says="A scheme has no type.",
        why="All other fields depend on it.",
        source="Authentication extension, Authentication Scheme Object: `type` is required.",
        repair="Write a standard type, or the name of your own.",
        check=_type_is_there,
        example=item({"login": {"openIdConnectUrl": LOGIN["openIdConnectUrl"]}}),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S05",
        name="type-not-nonempty-string",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        says="The type of a scheme is not a text with something in it.",
        why="Clients choose what to do by the type; the official schema takes the empty text for a "
        "custom type.",
        source=(
            "Authentication extension, Authentication Scheme Object: `type` is "
            "required, and a text."
        ),
        repair="Write a standard type, or the name of your own.",
        check=_type_is_text,
        example=item({"login": {"type": ""}}),
    ),
    CatalogRule(
        id="S06",
        name="field-required-for-type",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=frozenset(type_ for type_, fields in FIELDS_BY_TYPE.items() if fields),
        says="A scheme lacks a field that its type requires.",
        why="Without it the scheme cannot be used.",
        source="catalog-auth.md, B2: required for its own types.",
        repair="Add the field.",
        check=_own_fields_are_there,
        example=item({"key": {"type": "apiKey", "in": "header"}}),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S07",
        name="field-not-allowed-for-type",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        says="A scheme has a field that belongs to another type.",
        why="The official schema rejects it; most often the type is the wrong one.",
        source="catalog-auth.md, B2: forbidden for every other type, custom types included.",
        repair="Remove the field, or correct the type.",
        check=_other_fields_are_not,
        example=item(
            {"bucket": {"type": "s3", "name": "x"}}, {"data": scene("bucket", href="s3://b/k")}
        ),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S08",
        name="wrong-json-type",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="A value has the wrong JSON type.",
        why="Clients stop there, or read something else than was meant.",
        source="catalog-auth.md, B2: the tables of fields.",
        repair="Write the value with the type that the message names.",
        check=_values_have_their_types,
        example=item({"login": {**LOGIN, "openIdConnectUrl": 5}}),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S15",
        name="refs-not-string-list",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="auth:refs is no list of texts.",
        why="Nobody can tell which schemes are meant; the official schema does not look into "
        "alternates, so it passes there.",
        source="Authentication extension, Fields: a list of texts; catalog-auth.md, B1.",
        repair='Write a list of names, such as ["login"].',
        check=_references_are_names,
        example=item({"login": LOGIN}, {"data": {"href": SCENE, "auth:refs": "login"}}),
    ),
    CatalogRule(
        id="S20",
        name="scheme-name-unsafe",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="The name of a scheme has a line break (error), is empty, cannot be seen, or means "
        "something to the language that reads it (warning).",
        why="Validators disagree about such names, and programs trip over them.",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Use letters, digits, - and _.",
        check=_names_are_safe,
        example=item({"login\n": LOGIN}),
    ),
)
