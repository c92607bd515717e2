"""Chains of schemes that are done one after the other (v1.2.0, `auth:refs` in a scheme).

Refs on a scheme are alternatives for its *input*: the subject token of a token exchange, the
credential for a signing API, the token of an HTTP bearer or API key scheme, the keys of s3. A
scheme with several flows, or several inputs, makes as many chains; the order is the document's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tollgate.serve.catalog_auth.document.document import REFS, Document, Scheme
from tollgate.serve.catalog_auth.document.near_misses import nearest
from tollgate.serve.catalog_auth.resolve.secret_removal import without_secrets
from tollgate.serve.catalog_auth.resolve.steps import Unresolved

CHAIN_LENGTH_RESOLVED_MAX = 8
CHAINS_MAX = 32
REFS_MAX = 64
# Types that can take another scheme's token; of oauth2, only the token exchange does.
_TAKERS = frozenset(("signedUrl", "http", "apiKey", "s3"))


@dataclass(frozen=True, slots=True)
class Link:
    """A scheme, and the flow of it."""

    scheme: Scheme
    flow: str | None


@dataclass(frozen=True, slots=True)
class Chain:
    """The last link is the scheme that gives access. `problem` is the rule that it breaks: R13 no
    input, R14 a cycle, R17 too long."""

    links: tuple[Link, ...]
    problem: str | None = None


def chains(document: Document, scheme: Scheme) -> list[Chain]:
    """At least one, CHAINS_MAX at most."""
    return list(islice(_chains(document, scheme, ()), CHAINS_MAX))


def dangling(document: Document, found: list[Chain]) -> list[Unresolved]:
    """The refs of the chains' schemes that lead nowhere."""
    schemes = {link.scheme.name: link.scheme for chain in found for link in chain.links}
    refs = (ref for scheme in schemes.values() for ref in names_in(scheme.value.get(REFS)))
    names = dict.fromkeys(ref for ref in refs if document.scheme(ref) is None)
    return [dangling_ref(document, ref, "R13") for ref in list(names)[:REFS_MAX]]


def dangling_ref(document: Document, ref: str, rule: str) -> Unresolved:
    """A ref that leads nowhere, with the name that was probably meant (R07)."""
    near = nearest(ref, [*(scheme.name for scheme in document.schemes), *document.inherited])
    return Unresolved(without_secrets(ref), rule, None if near is None else without_secrets(near))


def flow_names_of(scheme: Scheme) -> list[str | None]:
    """The names of its flows; of a scheme without, the one answer None."""
    flows = scheme.value.get("flows")
    if scheme.type not in ("oauth2", "signedUrl") or not isinstance(flows, dict) or not flows:
        return [None]
    return list(flows)


def _chains(document: Document, scheme: Scheme, above: tuple[str, ...]) -> Iterator[Chain]:
    for flow in flow_names_of(scheme):
        link = Link(scheme, flow)
        takes = scheme.type in _TAKERS or (scheme.type == "oauth2" and flow == "tokenExchange")
        refs = names_in(scheme.value.get(REFS)) if takes else []
        if not refs:
            yield Chain((link,))
            continue
        has_input = False
        for chain in _inputs(document, refs, (*above, scheme.name)):
            has_input = True
            yield Chain((*chain.links, link), chain.problem)
        if not has_input:
            yield Chain((link,), "R13")


def _inputs(document: Document, refs: list[str], above: tuple[str, ...]) -> Iterator[Chain]:
    for ref in refs:
        scheme = document.scheme(ref)
        if ref in above:
            yield Chain((), "R14")
        elif len(above) >= CHAIN_LENGTH_RESOLVED_MAX:
            yield Chain((), "R17")
        elif scheme is not None:
            yield from _chains(document, scheme, above)


def names_in(refs: object) -> list[str]:
    """The names of a list of references, each once, REFS_MAX at most."""
    if not isinstance(refs, list):
        return []
    return list(dict.fromkeys(ref for ref in refs[:REFS_MAX] if isinstance(ref, str)))
