"""Finds the target of a resolution: a holder, its href made absolute, and the stores it is in."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from urllib.parse import urljoin

from tollgate.serve.catalog_auth.document.document import Document, Holder, HolderKind, Kind
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.urls import scheme_of
from tollgate.serve.catalog_auth.objects.storage_schemes import (
    SCHEMES_MAX,
    described_storages,
    named_storages,
    own_fields,
    storage_schemes_of,
)
from tollgate.serve.catalog_auth.objects.urls import URI_PROVIDERS, ObjectLocation, parse_object_url
from tollgate.serve.catalog_auth.resolve.object_stores import Store
from tollgate.serve.catalog_auth.resolve.secret_removal import (
    mapping_without_secrets,
    without_secrets,
)

NEAR_NAMES_MAX = 3


class By(Enum):
    """The kinds of names that a target has."""

    POINTER = "pointer"
    HREF = "href"


@dataclass(frozen=True, slots=True)
class AccessTarget:
    """A holder's JSON Pointer, or an href: as the document has it, or absolute."""

    by: By
    text: str


@dataclass(frozen=True, slots=True)
class NoTarget:
    """Nothing in the document is named so; `suggest` are names that it has."""

    target: AccessTarget
    suggest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundTarget:
    """A holder. `href` is absolute, unless nothing tells against what, and without secrets
    (`is_withheld`: it had one). `stores` are where its object is kept, by the storage scheme that
    says so; empty when it is no object."""

    holder: Holder
    href: str | None
    is_withheld: bool
    stores: Mapping[str | None, Store]
    values: Mapping[str, str]
    has_unread_stores: bool = False

    @property
    def is_absolute(self) -> bool:
        return self.href is not None and bool(scheme_of(self.href))

    @property
    def location(self) -> ObjectLocation | None:
        return next((store.location for store in self.stores.values()), None)


def aim(
    document: Document, target: AccessTarget, base_url: str | None = None
) -> FoundTarget | NoTarget:
    """The holder that is meant. `base_url` is where the document was found; its `self` link says so
    as well."""
    base = base_url or _self_href(document)
    holder = _holder(document, target, base)
    if holder is None:
        return NoTarget(target, _suggestions(document, target))
    written = None if holder.href is None else _absolute(holder.href, base)
    href = None if written is None else without_secrets(written)
    values = {name: without_secrets(value) for name, value in _values(document, holder).items()}
    stores = _stores(document, holder, href)
    is_cut = len(described_storages(document)) > SCHEMES_MAX
    return FoundTarget(holder, href, href != written, stores, values, is_cut)


def _stores(document: Document, holder: Holder, href: str | None) -> Mapping[str | None, Store]:
    if href is None:
        return {}
    schemes = mapping_without_secrets(described_storages(document))
    named = named_storages(holder, schemes)
    is_uri = href.partition(":")[0].lower() in URI_PROVIDERS
    pays = _flat(document, holder) is True
    if not is_uri or not named:
        told = named or ({} if is_uri else schemes)
        store = _store(href, told, named, pays)
        return {} if store is None else {next(iter(named), None): store}
    each = {name: {name: scheme} for name, scheme in named.items()}
    stores = {name: _store(href, one, one, pays) for name, one in each.items()}
    return {name: store for name, store in stores.items() if store is not None}


def _store(
    href: str, told: Mapping[str, object], named: Mapping[str, object], pays: bool
) -> Store | None:
    """The store that `told` tell; what it costs is said only by the first of `named`."""
    location = parse_object_url(href, told)
    if not isinstance(location, ObjectLocation):
        return None
    first = storage_schemes_of(named)[:1]
    return Store(
        location,
        pays or any(scheme.is_requester_pays for scheme in first),
        any(scheme.is_bucket_in_host for scheme in first),
    )


def _holder(document: Document, target: AccessTarget, base: str | None) -> Holder | None:
    for holder in document.holders:
        if target.by is By.POINTER:
            if pointer(holder.path) == target.text:
                return holder
        elif holder.href is not None and target.text in (
            holder.href,
            _absolute(holder.href, base),
        ):
            return holder
    return None


def _suggestions(document: Document, target: AccessTarget) -> tuple[str, ...]:
    if target.by is By.POINTER:
        names = [pointer(holder.path) for holder in document.holders]
    else:
        names = [holder.href for holder in document.holders if holder.href is not None]
    return tuple(get_close_matches(target.text, names, NEAR_NAMES_MAX))


def _self_href(document: Document) -> str | None:
    for holder in document.holders:
        if holder.kind is HolderKind.LINK and holder.value.get("rel") == "self":
            return holder.href
    return None


def _absolute(href: str, base: str | None) -> str:
    if base is None:
        return href
    try:
        return urljoin(base, href)
    except ValueError:  # an address in brackets that is none
        return href


def _flat(document: Document, holder: Holder) -> object:
    """`storage:requester_pays` of the storage extension's first version: the holder's, or all's."""
    own = holder.value.get("storage:requester_pays")
    return own if own is not None else own_fields(document).get("storage:requester_pays")


def _values(document: Document, holder: Holder) -> Mapping[str, str]:
    """The names around the target: what an API may ask for."""
    values = {}
    if holder.kind is not HolderKind.LINK:
        step = 1 if len(holder.path) > 1 else 0
        values["asset"] = str(holder.path[step])
    root = document.root
    id_, collection = root.get("id"), root.get("collection")
    if document.kind is Kind.ITEM:
        if isinstance(id_, str):
            values["item"] = id_
        if isinstance(collection, str):
            values["collection"] = collection
    elif document.kind is Kind.COLLECTION and isinstance(id_, str):
        values["collection"] = id_
    return values
