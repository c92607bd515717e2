"""Invitations: to a real mail server on loopback, or into the outbox."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.support.manual_clock import ManualClock
from tollgate.serve.payments.mail.mailer import (
    NAME_LENGTH_MAX,
    SUBJECT,
    BackgroundInvitations,
    Invitation,
    Mailer,
    SmtpTransport,
    invitation_letter,
    open_mailer,
)
from tollgate.serve.payments.mail.outbox import MailError, Outbox, letters_waiting, outbox_folder
from tollgate.serve.settings.choices import SmtpTls
from tollgate.serve.settings.payments import MailSettings

CLOCK = ManualClock(1_800_000_000.0)
SENDER = "Tollgate <tollgate@example.com>"
INVITATION = Invitation("one@example.com", "Coffee & Cake", "Café")


class Server:
    """Takes mail and remembers it; `says` is its answer."""

    def __init__(self) -> None:
        self.port = 0
        self.says = "250 OK"
        self.refuses = ""
        self.letters: list[tuple[list[str], bytes]] = []

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.refuses in envelope.rcpt_tos:
            return "554 no such reader"
        if self.says.startswith("250"):
            assert isinstance(envelope.content, bytes)
            self.letters.append((envelope.rcpt_tos, envelope.content))
        return self.says

    def settings(self, tls: SmtpTls = SmtpTls.NONE, ca: str = "", **changes: Any) -> MailSettings:
        found = MailSettings(host="localhost", port=self.port, tls=tls, ca=ca, sender=SENDER)
        return replace(found, **changes)


@dataclass(frozen=True, slots=True)
class Authority:
    tls: ssl.SSLContext
    ca_file: str


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.issue_cert("localhost").configure_cert(tls)
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return Authority(tls, str(tmp_path / "ca.pem"))


@contextmanager
def serving(
    tls_from_the_beginning: ssl.SSLContext | None = None, **options: Any
) -> Iterator[Server]:
    """A mail server at a free port, in a thread of its own."""
    server = Server()
    loop = asyncio.new_event_loop()

    async def open_door() -> asyncio.Server:
        def talk() -> SMTP:
            return SMTP(server, hostname="localhost", enable_SMTPUTF8=True, loop=loop, **options)

        return await loop.create_server(talk, "127.0.0.1", 0, ssl=tls_from_the_beginning)

    door = loop.run_until_complete(open_door())
    server.port = door.sockets[0].getsockname()[1]
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(door.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def invite(settings: MailSettings, data: Path, invitation: Invitation = INVITATION) -> Path | None:
    return asyncio.run(open_mailer(settings, str(data), CLOCK).invite(invitation))


def test_an_invitation_reaches_its_reader(tmp_path: Path) -> None:
    with serving() as server:
        assert invite(server.settings(), tmp_path) is None
    ((to, content),) = server.letters
    assert to == ["one@example.com"]
    letter = message_from_bytes(content, policy=default)
    assert letter["From"] == SENDER
    assert letter["To"] == "one@example.com"
    assert letter["Subject"] == SUBJECT
    assert letter["Date"].datetime.timestamp() == CLOCK.now_s()
    assert letter["Message-ID"].endswith("@example.com>")
    assert "Café has given you access to Coffee & Cake" in letter.get_content()
    assert letters_waiting(str(tmp_path)) == 0


def test_over_tls_from_the_beginning(tmp_path: Path, authority: Authority) -> None:
    with serving(authority.tls) as server:
        assert invite(server.settings(SmtpTls.TLS, authority.ca_file), tmp_path) is None
        assert len(server.letters) == 1
        with pytest.raises(MailError, match="certificate verify failed"):
            asyncio.run(carry(server.settings(SmtpTls.TLS)))


def test_over_tls_from_the_greeting_on(tmp_path: Path, authority: Authority) -> None:
    with serving(tls_context=authority.tls, require_starttls=True) as server:
        assert invite(server.settings(SmtpTls.STARTTLS, authority.ca_file), tmp_path) is None
        assert len(server.letters) == 1
        with pytest.raises(MailError, match="certificate verify failed"):
            asyncio.run(carry(server.settings(SmtpTls.STARTTLS)))


def test_a_server_without_tls_is_not_spoken_to_in_clear(tmp_path: Path) -> None:
    with serving() as server:
        with pytest.raises(MailError, match="STARTTLS"):
            asyncio.run(carry(server.settings(SmtpTls.STARTTLS)))
        assert server.letters == []


def test_with_a_password(tmp_path: Path, authority: Authority) -> None:
    def check(
        server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword
    ) -> AuthResult:
        is_good = (data.login, data.password) == (b"me", b"secret")
        return AuthResult(success=is_good, handled=False)

    options = {"authenticator": check, "auth_required": True}
    with serving(tls_context=authority.tls, **options) as server:
        good = server.settings(SmtpTls.STARTTLS, authority.ca_file, user="me", password="secret")
        assert invite(good, tmp_path) is None
        assert len(server.letters) == 1
        with pytest.raises(MailError) as caught:
            asyncio.run(carry(replace(good, password="wr0ng")))
        assert "wr0ng" not in str(caught.value)


async def carry(settings: MailSettings) -> None:
    await SmtpTransport(settings).carry(invitation_letter(INVITATION, SENDER, CLOCK.now_s()))


def test_without_a_server_an_invitation_waits_in_the_outbox(tmp_path: Path) -> None:
    path = invite(MailSettings(), tmp_path)
    assert path is not None
    assert path.parent == outbox_folder(str(tmp_path))
    assert path.suffix == ".eml"
    letter = message_from_bytes(path.read_bytes(), policy=default)
    assert letter["From"] == "Tollgate <tollgate@localhost>"
    assert letter["To"] == "one@example.com"
    assert invite(MailSettings(), tmp_path) != path
    assert letters_waiting(str(tmp_path)) == 2
    assert path.parent.stat().st_mode & 0o077 == 0


def test_what_a_server_does_not_take_waits_and_is_sent_later(tmp_path: Path) -> None:
    with serving() as server:
        server.says = "451 come back later"
        post = open_mailer(server.settings(), str(tmp_path), CLOCK)
        for number in range(3):
            invitation = replace(INVITATION, email=f"ü{number}@exämple.de")
            assert asyncio.run(post.invite(invitation)) is not None
            CLOCK.advance(1)
        assert asyncio.run(post.send_waiting()) == 0
        assert letters_waiting(str(tmp_path)) == 3
        server.says = "250 OK"
        assert asyncio.run(post.send_waiting()) == 3
        assert letters_waiting(str(tmp_path)) == 0
    assert [to for to, _ in server.letters] == [[f"ü{n}@xn--exmple-cua.de"] for n in range(3)]


def test_a_letter_that_is_not_taken_holds_back_no_other(tmp_path: Path) -> None:
    for email in ("one@example.com", "two@example.com", "three@example.com"):
        invite(MailSettings(), tmp_path, replace(INVITATION, email=email))
    with serving() as server:
        server.refuses = "two@example.com"
        post = open_mailer(server.settings(), str(tmp_path), CLOCK)
        assert asyncio.run(post.send_waiting()) == 2
    assert letters_waiting(str(tmp_path)) == 1
    assert sorted(to for ((to,), _) in server.letters) == ["one@example.com", "three@example.com"]


def test_nobody_there_is_no_reason_to_lose_a_letter(tmp_path: Path) -> None:
    with serving() as server:
        settings = server.settings(timeout_s=2.0)
    assert invite(settings, tmp_path) is not None
    assert letters_waiting(str(tmp_path)) == 1


def test_without_a_server_nothing_is_sent(tmp_path: Path) -> None:
    invite(MailSettings(), tmp_path)
    assert asyncio.run(open_mailer(MailSettings(), str(tmp_path), CLOCK).send_waiting()) == 0
    assert letters_waiting(str(tmp_path)) == 1


@pytest.mark.parametrize("data", ["", "missing"])
def test_an_outbox_that_is_not_there_is_empty(tmp_path: Path, data: str) -> None:
    assert letters_waiting(str(tmp_path / data)) == 0


def test_status_says_how_many_letters_wait(tmp_path: Path) -> None:
    invite(MailSettings(), tmp_path)
    command = [sys.executable, "-m", "tollgate.serve.cli", "status"]
    environment = {"PATH": "/usr/bin:/bin", "TOLLGATE_DATA": str(tmp_path)}
    for options, expected in (([], "1 letters wait to be sent"), (["--json"], "{")):
        told = subprocess.run(
            [*command, *options],
            cwd=Path(__file__).parents[3],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 3
        assert expected in told.stdout
    assert json.loads(told.stdout)["lettersWaiting"] == 1


def test_an_outbox_has_an_end(tmp_path: Path) -> None:
    post = Mailer(SENDER, Outbox(tmp_path, letters_max=2), None, CLOCK)
    for _ in range(2):
        asyncio.run(post.invite(INVITATION))
    with pytest.raises(MailError, match="2 letters wait already"):
        asyncio.run(post.invite(INVITATION))


def test_an_outbox_that_cannot_be_is_said_to_be(tmp_path: Path) -> None:
    outbox_folder(str(tmp_path)).write_text("")
    with pytest.raises(MailError, match="File exists"):
        invite(MailSettings(), tmp_path)


@pytest.mark.parametrize(
    "invitation",
    [
        replace(INVITATION, merchant="Shop\r\nBcc: all@example.com\r\n\r\nBuy!"),
        replace(INVITATION, invited_by="App\r\n.\r\nRCPT TO:<all@example.com>"),
        replace(INVITATION, merchant="=?utf-8?q?x=0D=0ABcc:_all=40example.com?="),
        replace(INVITATION, merchant="x" * 5_000),
    ],
)
def test_names_add_no_header_and_no_reader(tmp_path: Path, invitation: Invitation) -> None:
    with serving() as server:
        assert invite(server.settings(), tmp_path, invitation) is None
    ((to, content),) = server.letters
    assert to == ["one@example.com"]
    letter = message_from_bytes(content, policy=default)
    assert letter["Bcc"] is None
    assert len(letter.get_all("To")) == 1
    assert letter.get_content().startswith("Hello,")


@pytest.mark.parametrize(
    "name",
    [
        "Claim your prize at https://evil.example/x",
        "see evil.example now",
        "write to me@evil.example",
        "evil。com evil．com evil｡com evil․com evil⒈com",
        "http:/evil/x //evil/x http:\\\\evil/x／／evil me＠evil",
        "x" * 256,
    ],
)
def test_a_stranger_writes_nothing_of_their_own(tmp_path: Path, name: str) -> None:
    with serving() as server:
        invite(server.settings(), tmp_path, replace(INVITATION, merchant=name, invited_by=name))
    ((_, content),) = server.letters
    letter = message_from_bytes(content, policy=default)
    assert letter["Subject"] == SUBJECT
    assert "evil" not in letter.get_content()
    assert "x" * (NAME_LENGTH_MAX + 1) not in letter.get_content().replace("\n", "")


@pytest.mark.parametrize(("mails_for_test", "letters"), [(False, 1), (True, 2)])
def test_test_merchants_send_no_mail_unless_the_operator_says_so(
    tmp_path: Path, mails_for_test: bool, letters: int
) -> None:
    async def send() -> None:
        post = open_mailer(MailSettings(), str(tmp_path), CLOCK)
        invitations = BackgroundInvitations(post, mails_for_test=mails_for_test)
        invitations.send(INVITATION)
        invitations.send(replace(INVITATION, is_test=True))
        await invitations.sent()

    asyncio.run(send())
    assert letters_waiting(str(tmp_path)) == letters


@pytest.mark.parametrize(
    "address",
    [
        "one@example.com\r\nBcc: all@example.com",
        "one@example.com, all@example.com",
        "=?utf-8?q?x=0D=0ABcc=3A_all?=@example.com",
        "one",
        "",
    ],
)
def test_what_is_no_plain_address_gets_no_letter(tmp_path: Path, address: str) -> None:
    with pytest.raises(MailError, match="the address must be"):
        invite(MailSettings(), tmp_path, replace(INVITATION, email=address))
    assert letters_waiting(str(tmp_path)) == 0


def test_a_letter_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    class NoCarrier:
        async def carry(self, letter: object) -> None:
            raise MailError("not today")

    post = Mailer(SENDER, Outbox(tmp_path), NoCarrier(), CLOCK)
    path = asyncio.run(post.invite(INVITATION))
    assert list(tmp_path.iterdir()) == [path]
