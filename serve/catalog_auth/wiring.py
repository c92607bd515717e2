"""What a process of the service is made of, put together: settings in, a desk out."""

from importlib.metadata import version

from serve.catalog_auth.desk import Desk, Slots
from serve.catalog_auth.envelopes import severities_named
from serve.catalog_auth.problems import Unprocessable
from serve.catalog_auth.report import Options
from serve.catalog_auth.rule import Profile
from serve.settings import Settings


class WiringError(Exception):
    """Settings that only this service can judge are wrong; the text is one line."""


def catalog_options(settings: Settings) -> Options:
    """How documents are judged where a call says nothing. Raises WiringError."""
    catalog = settings.catalog
    try:
        severities = severities_named(dict(catalog.severities))
    except Unprocessable as problem:
        told = "; ".join(cause.detail for cause in problem.causes)
        raise WiringError(f"{settings.spelled('CATALOG_RULES')}: {told}") from None
    return Options(profile=Profile(catalog.profile), severities=severities)


def catalog_desk(settings: Settings) -> Desk:
    """The desk of a process. Raises WiringError."""
    catalog = settings.catalog
    return Desk(
        options=catalog_options(settings),
        document_bytes_max=catalog.document_bytes_max,
        slots=Slots(catalog.bulk_calls_max),
        public_url=catalog.public_url,
        version=version("tollgate"),
    )
