"""Pages for people: templates with everything escaped, and a policy that leaves nothing open."""

from functools import cache

import jinja2
from starlette.responses import Response

HTML = "text/html"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def rendered(template: str, **values: object) -> Response:
    """A page of a template."""
    text = _templates().get_template(template).render(values)
    return Response(text, 200, HEADERS, f"{HTML}; charset=utf-8")


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("tollgate.serve.catalog_auth.page", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
