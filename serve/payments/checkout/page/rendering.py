"""The page's templates, everything escaped, and a policy under which only its own script runs."""

from functools import cache
from importlib.resources import files

import jinja2

from tollgate.serve.payments.checkout.page.language import PageLanguage

HTML = "text/html; charset=utf-8"
# (3-D Secure is shown in a frame of our own origin; nobody shows us in one)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex",
}
_SCRIPT = "text/javascript; charset=utf-8"
_FILES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": _SCRIPT,
    "card.js": _SCRIPT,
    "memory.js": _SCRIPT,
    "notices.js": _SCRIPT,
    "payment.js": _SCRIPT,
}


def rendered(template: str, language: PageLanguage, view: object) -> str:
    """The text of a page."""
    page = _templates().get_template(template)
    return page.render(view=view, language=language, t=language.text)


@cache
def file_of_page(name: str) -> tuple[bytes, str] | None:
    """A file that the page is made of, with its type; None when there is none of that name."""
    if name not in _FILES:
        return None
    content = files("tollgate.serve.payments.checkout.page").joinpath(name).read_bytes()
    return content, _FILES[name]


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("tollgate.serve.payments.checkout.page", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
