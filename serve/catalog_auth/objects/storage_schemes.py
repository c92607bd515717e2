"""Storage schemes (the storage extension, v2): where a document's objects are kept.

`platform` is the store's URL or a URI template whose variables are members of the scheme:
`https://{bucket}.s3.{region}.amazonaws.com`. A variable without a member stands for whatever is
there. Only a bucket that is the host's first label or the path's first segment is understood.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult

from tollgate.serve.catalog_auth.document.document import Document, Holder, Kind
from tollgate.serve.catalog_auth.objects.hosts import Provider

STORAGE_SCHEMES = "storage:schemes"
STORAGE_REFS = "storage:refs"
# More of them are not looked at.
SCHEMES_MAX = 64
PLATFORM_LENGTH_MAX = 2_048
_VARIABLE = re.compile(r"\{(\w+)\}")
_PROVIDERS_BY_TYPE = {"aws-s3": Provider.AWS, "ms-azure": Provider.AZURE}
_BUCKET = "{bucket}"


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """A place at a platform: the bucket if the host told it, and the rest of the path."""

    endpoint: str
    bucket: str | None
    path: str
    region: str | None
    is_bucket_in_host: bool


@dataclass(frozen=True, slots=True)
class StorageScheme:
    """`members` are the template's variables: the scheme's texts."""

    name: str
    type: str | None
    platform: str
    region: str | None
    is_requester_pays: bool
    members: Mapping[str, str]

    @property
    def provider(self) -> Provider:
        return _PROVIDERS_BY_TYPE.get(self.type or "", Provider.CUSTOM)

    @property
    def is_bucket_in_host(self) -> bool:
        return self.platform.partition("://")[2].startswith(f"{_BUCKET}.")

    def endpoint_for(self, provider: Provider, bucket: str) -> str | None:
        """The store's URL without the bucket, for a bucket that this scheme may hold."""
        is_azure = self.provider is Provider.AZURE
        if provider is Provider.GOOGLE or is_azure is not (provider is Provider.AZURE):
            return None
        if not is_azure and self.members.get("bucket", bucket) != bucket:
            return None
        scheme, mark, rest = self.platform.partition("://")
        rest = rest.removeprefix(f"{_BUCKET}.").rstrip("/").removesuffix(f"/{_BUCKET}")
        rest = self._filled(rest)
        if not mark or scheme not in ("http", "https") or not rest or _VARIABLE.search(rest):
            return None
        authority, slash, path = rest.partition("/")
        return f"{scheme}://{authority.lower()}{slash}{path}"

    def place_of(self, url: SplitResult) -> StorageLocation | None:
        """The place of an http(s) URL at this platform; None when it is elsewhere."""
        template = self.platform.partition("://")[2].rstrip("/")
        authority, _, path = template.removesuffix(f"/{_BUCKET}").partition("/")
        host_pattern = self._pattern(authority.removeprefix(f"{_BUCKET}."))
        if self.is_bucket_in_host:
            host_pattern = rf"(?:(?P<_bucket>.+)\.){host_pattern}"
        found = re.fullmatch(host_pattern, url.netloc, re.IGNORECASE)
        prefix = f"/{self._filled(path)}" if path else ""
        if not template or found is None or not f"{url.path}/".startswith(f"{prefix}/"):
            return None
        captured = found.groupdict()
        bucket = captured.get("_bucket")
        if bucket is not None and bucket != self.members.get("bucket", bucket):
            return None
        store = url.netloc[len(bucket) + 1 :] if bucket else url.netloc
        region = self.region or captured.get("region")
        endpoint = f"{url.scheme}://{store.lower()}{prefix}"
        return StorageLocation(endpoint, bucket, url.path[len(prefix) :], region, bool(bucket))

    def _filled(self, text: str) -> str:
        """The template with the variables that have members in their place."""
        return _VARIABLE.sub(lambda found: self.members.get(found[1], found[0]), text)

    def _pattern(self, text: str) -> str:
        """The template as a regular expression; a variable without a member is a group."""
        pattern, end = "", 0
        names: set[str] = set()
        for found in _VARIABLE.finditer(text):
            pattern += re.escape(text[end : found.start()])
            name = found[1]
            if name in self.members:
                pattern += re.escape(self.members[name])
            elif name in names or not name.isidentifier():
                pattern += "[^/.]+"
            else:
                names.add(name)
                pattern += f"(?P<{name}>[^/.]+)"
            end = found.end()
        return pattern + re.escape(text[end:])


def described_storages(document: Document) -> Mapping[str, object]:
    """The storage schemes that a document can refer to: its own, and those of the documents above
    that no nearer one defines otherwise."""
    found: Mapping[str, object] = {}
    for owner in (document.ancestors.catalog, document.ancestors.collection, own_fields(document)):
        schemes = owner.get(STORAGE_SCHEMES) if owner is not None else None
        if isinstance(schemes, dict):
            found = {**found, **schemes} if found else schemes
    return found


def named_storages(holder: Holder, described: Mapping[str, object]) -> Mapping[str, object]:
    """Of the storage schemes that are described, those that a holder refers to, in its order."""
    refs = holder.value.get(STORAGE_REFS)
    if not described or not isinstance(refs, list):
        return {}
    return {ref: described[ref] for ref in refs if isinstance(ref, str) and ref in described}


def own_fields(document: Document) -> Mapping[str, object]:
    """The object with the fields of a document: an item has them in its properties."""
    if document.kind is not Kind.ITEM:
        return document.root
    properties = document.root.get("properties")
    return properties if isinstance(properties, dict) else {}


def storage_schemes_of(value: object) -> tuple[StorageScheme, ...]:
    """The schemes of a document's `storage:schemes`; what is not well formed is left out."""
    if not isinstance(value, Mapping):
        return ()
    schemes = (_scheme(name, scheme) for name, scheme in list(value.items())[:SCHEMES_MAX])
    return tuple(scheme for scheme in schemes if scheme is not None)


def _scheme(name: object, value: object) -> StorageScheme | None:
    if not isinstance(name, str) or not isinstance(value, Mapping):
        return None
    platform = value.get("platform")
    if not isinstance(platform, str) or len(platform) > PLATFORM_LENGTH_MAX:
        return None
    members = {k: v for k, v in value.items() if isinstance(k, str) and isinstance(v, str)}
    return StorageScheme(
        name=name,
        type=members.get("type"),
        platform=platform,
        region=members.get("region"),
        is_requester_pays=value.get("requester_pays") is True,
        members=members,
    )
