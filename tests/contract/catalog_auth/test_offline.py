"""Validation opens no socket, ever: everything is judged while sockets are out of order."""

import socket
from typing import Any, NoReturn

import pytest

from tests.support.catalog_auth.data import own_cases, public_documents, specified_cases
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.report import Options, validate, validate_raw


@pytest.fixture(autouse=True)
def sockets_are_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        pytest.fail("validation asked for the network")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname", "socketpair"):
        monkeypatch.setattr(socket, name, refuse)


def test_sockets_are_out_of_order() -> None:
    with pytest.raises(pytest.fail.Exception):
        socket.create_connection(("127.0.0.1", 9))


@pytest.mark.parametrize("profile", Profile)
def test_all_documents_are_judged_without_the_network(profile: Profile) -> None:
    documents = [case["doc"] for case in (*own_cases(), *specified_cases())]
    documents += [rule.example for rule in RULES.values()]
    above = Ancestors({"type": "Collection", "auth:schemes": {"o": {"type": "s3"}}})
    for document in documents:
        for version in (None, *Version):
            validate(document, Options(profile, version), above)
    for raw in public_documents().values():
        validate_raw(raw, Options(profile))
