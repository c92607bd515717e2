"""The access of apps to orders (A1, T11, part D), decided in the book so that revoking an app takes
effect with the very next order (A2).

    create an app                             anybody, without credentials
    rotate an app's key                       the app
    recover an app                            whoever presents its recovery code
    replace an app's recovery code            the app, presenting the code
    reserve a merchant's id                   any app
    open a merchant                           its creator
    authorise a customer's payment            whoever pays, by the merchant's public key; its apps
    approve or reject a live merchant         the operator
    price a merchant                          the operator
    tell what is in a file of the network     the operator
    conclude what a card network was asked    the operator
    dispute, decide it, report fraud, pay out the operator; of a test merchant, its apps too
    refund                                    the merchant's apps that are owners, or refund
    take one's own access away                the merchant's apps
    everything else                           the merchant's apps that are owners

The operator may give every order: the card network, the sandbox and imports work for him. Test and
live never meet here: a book is one or the other, and so is everything in it.
"""

from tollgate.actors.ledger.book.head import Merchant
from tollgate.actors.ledger.law import commands
from tollgate.actors.ledger.law.outcomes import Refusal, forbidden
from tollgate.actors.ledger.law.roles import Act, forbidden_words, may
from tollgate.actors.ledger.law.values import NOBODY, OPERATOR, EntityId


def refuse_access(
    merchant: Merchant | None, command: commands.Command, app: EntityId
) -> Refusal | None:
    """None when `app` may give the command to the book of `merchant` (None: to the directory, or
    to a book that is not open)."""
    if app == OPERATOR:
        return None
    match command:
        case commands.CreateApp() | commands.RecoverApp():
            return None
        case commands.ApproveMerchant() | commands.RejectMerchant():
            return forbidden("only the operator approves or rejects a merchant")
        case commands.PriceMerchant():
            return forbidden("only the operator sets a merchant's fees")
        case commands.RecordSettlement():
            return forbidden("only the operator tells of settlements")
        case commands.OpenDispute() | commands.ReportFraud() if command.notice is not None:
            return forbidden("only the operator tells what is in a file of the network")
        case commands.Conclude():
            return forbidden("only the house concludes what a card network was asked")
        case commands.RotateKey():
            return None if app == command.app else forbidden("an app rotates its own key only")
        case commands.ReplaceRecoveryCode():
            return None if app == command.app else forbidden("the recovery code is another app's")
        case commands.ReserveMerchant():
            return None if app != NOBODY else forbidden("opening a merchant takes an app's key")
        case commands.OpenMerchant():
            is_creator = app == command.creator != NOBODY
            return None if is_creator else forbidden("a merchant is opened by its creator")
        case commands.Authorise(source=None) if app == NOBODY:
            return None
    role = None if merchant is None else merchant.role_of(app)
    if merchant is None or role is None:
        return forbidden("the app has no access to this merchant")
    if not may(role, _act(command, app)):
        return forbidden(forbidden_words(role))
    if isinstance(
        command,
        commands.OpenDispute | commands.DecideDispute | commands.ReportFraud | commands.PayOut,
    ):
        return (
            None
            if merchant.is_test
            else forbidden("only the operator may do this to a live merchant")
        )
    return None


def _act(command: commands.Command, app: EntityId) -> Act:
    match command:
        case commands.Refund():
            return Act.REFUND
        case commands.RevokeApp() if command.app == app:
            return Act.READ
        case _:
            return Act.MANAGE
