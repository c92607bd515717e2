"""Mail to people: invitations to a merchant, for now.

With a mail server in the settings a letter goes there; without one, or when it does not take the
letter, it waits as a file in the outbox, where an operator finds it and `send_waiting` sends it
later. Nothing that comes from outside can add a header: addresses are checked for their shape, and
names lose their control characters.
"""

import asyncio
import logging
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.parser import Parser
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime, parseaddr
from pathlib import Path
from typing import Protocol
from unicodedata import normalize

import aiosmtplib
from email_validator import validate_email

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.law.values import Role
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.rejections import FieldError
from tollgate.serve.payments.mail.outbox import MailError, Outbox, outbox_folder
from tollgate.serve.settings.choices import SmtpTls
from tollgate.serve.settings.payments import MailSettings

LOG = logging.getLogger("tollgate.payments.mail")
UNDER_WAY_MAX = 100
_REFUSALS = (
    aiosmtplib.SMTPDataError,
    aiosmtplib.SMTPRecipientsRefused,
    aiosmtplib.SMTPSenderRefused,
    aiosmtplib.SMTPNotSupported,
)
SENDER_WITHOUT_SERVER = "Tollgate <tollgate@localhost>"
_ENCODED = "=?"
# Nothing of a stranger's choice is in a subject, and little in a letter: it is no way to send
# advertising or traps in our name.
SUBJECT = "An invitation to a merchant's payments"
NAME_LENGTH_MAX = 40
# In what NFKC makes of a name. Browsers read \u3002 as a dot, and one slash or a backslash as two
# slashes; a slash within a word is a company's, as in A/S.
_LINK = re.compile(r":/|//|\\|@|[^\s.\u3002][.\u3002]+[^\s.\u3002]")


class LetterRefused(MailError):  # noqa: N818 - what the server did
    """The mail server answers, and does not take this letter; others it may."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """To a person whose address was given as a new user of a merchant, test or live."""

    email: str
    merchant: str
    invited_by: str
    is_test: bool = False
    role: Role = Role.OWNER


_MAY = {
    Role.OWNER: "see and manage its payments",
    Role.REFUNDS: "see its payments and refund them",
    Role.READ_ONLY: "see its payments",
}


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as it is sent, and between whom; `content` has seven bits but for the addresses."""

    sender: str
    to: str
    content: bytes

    @classmethod
    def read(cls, content: bytes) -> "Letter":
        """A letter that was kept."""
        message = Parser(EmailMessage, policy=SMTPUTF8).parsestr(content.decode())
        (sender,), (to,) = message["From"].addresses, message["To"].addresses
        return cls(sender.addr_spec, to.addr_spec, content)


class MailTransport(Protocol):
    """Takes letters to where they are read."""

    async def carry(self, letter: Letter) -> None:
        """Raises LetterRefused; MailError: there is nobody to take any."""


class Mailer:
    """Sends letters, or keeps them."""

    def __init__(
        self, sender: str, outbox: Outbox, carrier: MailTransport | None, clock: Clock
    ) -> None:
        self._sender = sender
        self._outbox = outbox
        self._carrier = carrier
        self._clock = clock

    async def invite(self, invitation: Invitation) -> Path | None:
        """None: the mail server has the letter. Otherwise the file in which it waits. Raises
        MailError: it could not even be kept."""
        letter = invitation_letter(invitation, self._sender, self._clock.now_s())
        if self._carrier is not None:
            try:
                await self._carrier.carry(letter)
            except MailError:
                pass  # it is kept, and whoever looks at the outbox sees that it waits
            else:
                return None
        return self._outbox.keep(letter.content, self._clock.now_s())

    async def send_waiting(self) -> int:
        """Send what waits, the oldest first, while the mail server answers; how many went."""
        if self._carrier is None:
            return 0
        sent = 0
        for path in sorted(self._outbox.waiting()):
            try:
                await self._carrier.carry(Letter.read(path.read_bytes()))
            except LetterRefused:
                continue
            except MailError:
                break
            path.unlink(missing_ok=True)
            sent += 1
        return sent


class BackgroundInvitations:
    """Hands invitations to the post, beside the calls: nobody who invites waits for a mail server.
    Belongs to one event loop.

    `mails_for_test`: also those of test merchants, which anybody can open."""

    def __init__(self, post: Mailer, *, mails_for_test: bool = False) -> None:
        self._post = post
        self._mails_for_test = mails_for_test
        self._under_way: set[asyncio.Task[None]] = set()

    def send(self, invitation: Invitation) -> None:
        """Beyond `UNDER_WAY_MAX` at once an invitation is dropped, and that is logged."""
        if invitation.is_test and not self._mails_for_test:
            return
        if len(self._under_way) >= UNDER_WAY_MAX:
            LOG.error("an invitation was dropped: %d are under way already", UNDER_WAY_MAX)
            return
        task = asyncio.get_running_loop().create_task(self._send(invitation))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def sent(self) -> None:
        """Waits until nothing is under way."""
        await asyncio.gather(*self._under_way)

    async def _send(self, invitation: Invitation) -> None:
        try:
            await self._post.invite(invitation)
        except MailError as error:
            LOG.error("an invitation was lost: %s", error)


class SmtpTransport:
    """Takes letters to a mail server."""

    def __init__(self, settings: MailSettings) -> None:
        assert settings.host, "a mail server is set"
        self._settings = settings

    async def carry(self, letter: Letter) -> None:
        settings = self._settings
        try:
            await aiosmtplib.send(
                letter.content,
                sender=letter.sender,
                recipients=[letter.to],
                mail_options=[] if letter.to.isascii() else ["SMTPUTF8"],
                hostname=settings.host,
                port=settings.port,
                username=settings.user or None,
                password=settings.password or None,
                use_tls=settings.tls is SmtpTls.TLS,
                start_tls=settings.tls is SmtpTls.STARTTLS,
                cert_bundle=settings.ca or None,
                timeout=settings.timeout_s,
            )
        except _REFUSALS as error:
            raise LetterRefused(self._line(error)) from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise MailError(self._line(error)) from None

    def _line(self, error: Exception) -> str:
        why = " ".join(str(error).split()) or type(error).__name__
        return f"{self._settings.host}:{self._settings.port}: {why}"


def open_mailer(settings: MailSettings, data: str, clock: Clock) -> Mailer:
    """The post of these settings."""
    carrier = SmtpTransport(settings) if settings.host else None
    sender = settings.sender or SENDER_WITHOUT_SERVER
    return Mailer(sender, Outbox(outbox_folder(data)), carrier, clock)


def invitation_letter(invitation: Invitation, sender: str, now_s: float) -> Letter:
    """The letter. Raises MailError: the address is not one."""
    checked = constraints.email(invitation.email)
    if isinstance(checked, FieldError):
        raise MailError(f"the address {checked.message}")
    if _ENCODED in checked:
        raise MailError("the address must be a plain one")
    user, _, domain = checked.rpartition("@")
    to = Address(username=user, domain=_ascii(domain))
    sender_address = parseaddr(sender)[1]
    message = EmailMessage(policy=SMTP if user.isascii() else SMTPUTF8)
    message["From"] = sender
    message["To"] = to
    message["Subject"] = SUBJECT
    message["Date"] = format_datetime(datetime.fromtimestamp(now_s, UTC))
    message["Message-ID"] = f"<{secrets.token_hex(16)}@{sender_address.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(
        f"Hello,\n\n{_named(invitation.invited_by) or 'Somebody'} has given you access to "
        f"{_named(invitation.merchant) or 'a merchant'}: you can {_MAY[invitation.role]}.\n\n"
        "If you did not expect this, you can ignore this message.\n",
        cte="quoted-printable",
    )
    content = message.as_bytes()
    arriving = Parser(EmailMessage, policy=SMTPUTF8).parsestr(content.decode())
    assert arriving.keys() == message.keys(), "a letter arrives with the headers it was given"
    return Letter(sender_address, to.addr_spec, content)


def _ascii(domain: str) -> str:
    """The domain as name servers know it, so that only a name before the @ can need UTF-8."""
    address = f"x@{domain}"
    found = validate_email(address, check_deliverability=False, test_environment=True)
    return found.ascii_domain


def _named(text: str) -> str:
    """A name as it may stand in a letter: short, and without what could be clicked on."""
    cleaned = constraints.plain_text(text, "name")
    if isinstance(cleaned, FieldError):
        return ""
    # (in that form it is sent, too: what was looked at is what arrives)
    words = [word for word in normalize("NFKC", cleaned).split() if not _LINK.search(word)]
    return " ".join(words)[:NAME_LENGTH_MAX].strip()
