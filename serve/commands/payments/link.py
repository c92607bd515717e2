"""`tollgate payments link`: a payment link, judged as the page would judge it, and its QR code."""

import sys
from pathlib import Path

import click

from tollgate.serve.commands.payments.api_calls import fail, page_base, read_settings
from tollgate.serve.payments.reference.data_file import DataFileError
from tollgate.serve.payments.reference.tables import load_reference


@click.command()
@click.argument("key", metavar="KEY")
@click.option("--test", is_flag=True, help="The merchant is a test merchant.")
@click.option("--currency", metavar="CODE", help="Three letters; without it, the merchant's own.")
@click.option("--value", metavar="AMOUNT", help="In major units, like 12.50; without it, a till.")
@click.option("--reference", metavar="TEXT", help="Is kept with the transaction, for the merchant.")
@click.option("--text", metavar="TEXT", help="Is shown to the customer.")
@click.option("--redirect", metavar="URL", help="Where customers go back to, with transactionId.")
@click.option("--locale", metavar="LOCALE", help="Such as en_US or da; without it, the browser's.")
@click.option("--recurring", is_flag=True, help="The customer agrees to later payments.")
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="A QR code to print.")
@click.option(
    "--url",
    default="",
    metavar="URL",
    help="Where customers find the page; without it, where it runs here, which others cannot call.",
)
def link(
    svg: Path | None, url: str, *, key: str, test: bool, recurring: bool, **texts: str | None
) -> None:
    """Print a link to the payment page for the merchant with the public key KEY.

    On a terminal its QR code follows. The exit code is 1 when the page would refuse the link; that
    KEY exists is not looked at.
    """
    # Imported here: no other command needs them.
    import segno

    from tollgate.serve.payments.checkout.page.language import language_of
    from tollgate.serve.payments.checkout.page.link import (
        PaymentLink,
        query_text,
        read_link,
        read_query,
    )
    from tollgate.serve.payments.checkout.page.view import fault_text

    settings = read_settings()
    flags = {"test": "1" if test else "", "recurring": "y" if recurring else ""}
    given = {"key": key, **flags, **{name: value or "" for name, value in texts.items()}}
    query = query_text(given)
    try:
        currencies = load_reference(settings.payments.tables).currencies
    except DataFileError as error:
        fail(str(error))
    found = read_link(read_query(query), currencies, currencies.fundable[0])
    if not isinstance(found, PaymentLink):
        fail(" ".join(fault_text(each, language_of("en")) for each in found))
    address = f"{page_base(url, settings)}/?{query}"
    click.echo(address)
    if svg is None and not sys.stdout.isatty():
        return
    try:
        code = segno.make_qr(address)
        if svg is not None:
            code.save(str(svg), kind="svg", scale=8, title=address)
    except segno.DataOverflowError:
        fail("the link is too long for a QR code: shorten text, reference or redirect")
    except OSError as error:
        fail(f"{svg}: {error.strerror}")
    if sys.stdout.isatty():
        code.terminal(compact=True)
