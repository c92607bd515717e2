"""The ways to each asset of a document, as the page shows them."""

from collections.abc import Iterator, Sequence

from tollgate.serve.catalog_auth.document.document import MISSING, Document, Holder, HolderKind
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.page.view import (
    TARGETS_MAX,
    ShownAlternative,
    ShownRecipe,
    ShownTarget,
    capitalised,
)
from tollgate.serve.catalog_auth.resolve.recipes.recipe import Tool, recipes
from tollgate.serve.catalog_auth.resolve.resolution import resolve
from tollgate.serve.catalog_auth.resolve.steps import (
    Alternative,
    DescribedStep,
    OidcStep,
    Resolution,
)
from tollgate.serve.catalog_auth.resolve.target import AccessTarget as Named
from tollgate.serve.catalog_auth.resolve.target import By, NoTarget
from tollgate.serve.catalog_auth.rules.findings import Finding

WAYS_MAX = 8
KINDS = {
    HolderKind.ASSET: "asset",
    HolderKind.ITEM_ASSET: "item asset",
    HolderKind.LINK: "link",
    HolderKind.ALTERNATE: "alternate",
}
TYPES = {
    "http": "HTTP authentication",
    "s3": "object-store credentials",
    "signedUrl": "a signed URL",
    "oauth2": "OAuth 2.0",
    "apiKey": "an API key",
    "openIdConnect": "OpenID Connect",
    "none": "No credentials needed",
}
LANGUAGES = {Tool.CURL: "curl", Tool.PYTHON: "Python", Tool.GDAL: "GDAL"}


def shown_targets(
    document: Document, findings: Sequence[Finding]
) -> tuple[tuple[ShownTarget, ...], int]:
    """The first TARGETS_MAX things to get at, and how many there are. Links without references
    lead to other documents, and are left out."""
    wanted = [
        holder
        for holder in document.holders
        if holder.kind is not HolderKind.LINK or holder.refs is not MISSING
    ]
    # Those that need something come first: they are why somebody asks.
    wanted.sort(key=lambda holder: holder.refs is MISSING)
    shown = [
        _target(holder, found)
        for holder in wanted[:TARGETS_MAX]
        if not isinstance(
            found := resolve(
                document,
                Named(By.POINTER, pointer(holder.path)),
                findings=findings,
                alternatives_max=WAYS_MAX,
            ),
            NoTarget,
        )
    ]
    return tuple(shown), len(wanted)


def _target(holder: Holder, found: Resolution) -> ShownTarget:
    return ShownTarget(
        name=f"{KINDS[holder.kind]} {_name(holder)}",
        href=found.href or "(no href)",
        told=told_in_short(found),
        ways=ways_of(found),
        left_out=tuple(_sentence(f"left out: {told}") for told in found.left_out),
    )


def told_in_short(found: Resolution) -> str:
    """The way to a target, in a few words."""
    if found.is_public:
        return "open to everybody"
    types = dict.fromkeys(one.type for one in found.alternatives if one.ref is not None)
    return " or ".join(TYPES.get(type_, type_) for type_ in types) or "nothing leads to it"


def ways_of(found: Resolution) -> tuple[ShownAlternative, ...]:
    """The ways, and the references that lead nowhere."""
    return (*(_way(one, found.href) for one in found.alternatives), *_broken(found))


def _name(holder: Holder) -> str:
    """A link is called by what it is for."""
    rel = holder.value.get("rel")
    return rel if holder.kind is HolderKind.LINK and isinstance(rel, str) else holder.name


def _way(one: Alternative, href: str | None) -> ShownAlternative:
    title = TYPES.get(one.type, one.type or "A scheme without a type")
    if one.ref is not None:
        title = f"“{one.ref}”: {title}"
    if one.flow is not None:
        title = f"{title}, flow {one.flow}"
    if one.storage is not None:
        title = f"{title}, storage {one.storage}"
    return ShownAlternative(
        title,
        tuple(dict.fromkeys(_notes(one))),
        tuple(ShownRecipe(LANGUAGES[recipe.tool], recipe.text) for recipe in recipes(one, href)),
    )


def _notes(one: Alternative) -> Iterator[str]:
    if one.chain:
        yield f"Its input comes of {' and then '.join(one.chain)}."
    for step in one.steps:
        if isinstance(step, DescribedStep):
            yield step.text
        yield from (_sentence(warning) for warning in step.warnings)
        if isinstance(step, OidcStep):
            yield from (_sentence(warning) for inner in step.steps for warning in inner.warnings)


def _broken(found: Resolution) -> Iterator[ShownAlternative]:
    for one in found.unresolved:
        meant = f" Meant is perhaps “{one.suggest}”." if one.suggest else ""
        yield ShownAlternative(f"“{one.ref}”", (f"There is no scheme of this name.{meant}",), ())


def _sentence(text: str) -> str:
    return f"{capitalised(text)}."
