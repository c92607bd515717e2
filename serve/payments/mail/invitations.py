"""Invitations on their way to the post: whoever invites does not wait for a mail server."""

import asyncio
import logging

from tollgate.serve.payments.mail.mailer import Invitation, Mailer
from tollgate.serve.payments.mail.outbox import MailError

LOG = logging.getLogger("tollgate.payments.mail")
UNDER_WAY_MAX = 100


class BackgroundInvitations:
    """Hands invitations to the post, beside the calls. Belongs to one event loop.

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
