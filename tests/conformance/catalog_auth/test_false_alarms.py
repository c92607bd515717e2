"""What is not said of public documents: a warning that their publishers would call noise."""

from collections import Counter
from collections.abc import Iterator

from tests.support.catalog_auth.data import public_documents
from tollgate.serve.catalog_auth.document.decoding import decode
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.registries.secret_shapes import find_secrets
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.verdict.report import validate_raw

# Each with the reason why its publisher would agree, or would not mind.
EXPECTED = Counter(
    {
        # The reference of an alternate, "https", names none of the schemes: nobody can follow it.
        ("R11", Severity.ERROR): 1,
        # A token exchange under v1.1.0, whose clients do not know it.
        ("E08", Severity.WARNING): 1,
        # An item of the extension's examples has a scheme "none" that nothing in it references.
        ("R04", Severity.WARNING): 1,
        # Eight collections whose scheme is for their items; and one with the input of that token
        # exchange, to which nothing under v1.1.0 leads.
        ("R04", Severity.INFO): 9,
        # The extension's own example, and a copy of it: bucket and key of a web address, of which
        # clients take the first label of the host.
        ("G10", Severity.INFO): 2,
        # A map's key in the query: it has to be there, and is worth knowing.
        ("K04", Severity.INFO): 1,
        # Metadata and quicklooks behind a login: once in each of 53 documents, and in both features
        # of one collection of items.
        ("R12", Severity.INFO): 55,
    }
)


def test_public_documents_are_told_nothing_but_this() -> None:
    told = Counter(
        (finding.rule, finding.severity)
        for raw in public_documents().values()
        for finding in validate_raw(raw).findings
    )
    assert told == EXPECTED


def test_nothing_in_public_documents_looks_like_a_secret() -> None:
    alarms = [
        (name, pointer(path))
        for name, raw in public_documents().items()
        for path, text in texts(decode(raw))
        if find_secrets(text)
    ]
    assert not alarms


def texts(root: object) -> Iterator[tuple[tuple[str | int, ...], str]]:
    rest: list[tuple[tuple[str | int, ...], object]] = [((), root)]
    while rest:
        path, value = rest.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            rest += [((*path, name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            rest += [((*path, index), inner) for index, inner in enumerate(value)]
