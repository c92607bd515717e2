"""The pages of played banks as replies; template, style and script lie in checkout/frames/.

Any page may show them in a frame, for any shop has customers. Nothing else is left open: no script
but our own file, no address but our own.
"""

from functools import cache
from importlib.resources import files

from tollgate.serve.payments.api.replies import Reply

HTML = b"text/html; charset=utf-8"
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; form-action 'self'; "
    b"base-uri 'none'; frame-ancestors *"
)
HEADERS = (
    (b"content-security-policy", POLICY),
    (b"referrer-policy", b"no-referrer"),
)
_FOLDER = "tollgate.serve.payments.checkout.frames"
_TYPES = {
    "frame.js": b"text/javascript; charset=utf-8",
    "frame.css": b"text/css; charset=utf-8",
}


def page(name: str, **values: str) -> Reply:
    """A page of the template, with everything escaped."""
    text = _template().render(page=name, **values)
    return Reply(200, text.encode(), HTML, HEADERS)


def asset(name: str) -> Reply | None:
    """A file that pages load; None when there is no such file."""
    media_type = _TYPES.get(name)
    return None if media_type is None else Reply(200, _file(name), media_type, HEADERS)


@cache
def _file(name: str) -> bytes:
    return files(_FOLDER).joinpath(name).read_bytes()


@cache
def _template():  # type: ignore[no-untyped-def]
    # Imported here: most payments see no bank.
    from jinja2 import Environment

    made = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return made.from_string(_file("frame.html").decode())
