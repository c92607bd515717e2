"""Puts together a process of the service: settings in, the context of its routes out."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.catalog_auth.api.context import CatalogContext, Slots
from tollgate.serve.catalog_auth.api.envelopes import severities_named
from tollgate.serve.catalog_auth.api.problems import Unprocessable
from tollgate.serve.catalog_auth.crawl.crawler import CrawlBounds, CrawlSetup
from tollgate.serve.catalog_auth.verdict.report import Options
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.settings import Settings, process_environment

if TYPE_CHECKING:
    # (botocore is imported where something is signed, and only there)
    from tollgate.serve.catalog_auth.sign.file import SigningService


class WiringError(Exception):
    """Settings that only this service can judge are wrong; the text is one line."""


def catalog_options(settings: Settings) -> Options:
    """The options that hold where a call says nothing. Raises WiringError."""
    catalog = settings.catalog
    try:
        severities = severities_named(dict(catalog.severities))
    except Unprocessable as problem:
        told = "; ".join(cause.detail for cause in problem.causes)
        raise WiringError(f"{settings.spelled('CATALOG_RULES')}: {told}") from None
    return Options(profile=catalog.profile, severities=severities)


def catalog_context(settings: Settings) -> CatalogContext:
    """The context of a process. Raises WiringError."""
    catalog = settings.catalog
    return CatalogContext(
        options=catalog_options(settings),
        document_bytes_max=catalog.document_bytes_max,
        slots=Slots(catalog.bulk_calls_max),
        public_url=catalog.public_url,
        origins=catalog.origins,
        trusted_origins=catalog.trusted_origins,
        version=version("tollgate"),
        signing=_signing(settings),
        crawling=_crawling(settings) if settings.crawl.is_on else None,
        tallies=Tallies(f"catalog-{os.getpid()}"),
    )


def _crawling(settings: Settings) -> CrawlSetup:
    crawl = settings.crawl
    document_bytes_max = settings.catalog.document_bytes_max
    policy = TargetPolicy(crawl.allows_http, crawl.allows_private)
    bounds = CrawlBounds(
        documents_max=crawl.documents_max,
        depth_max=crawl.depth_max,
        bytes_max=crawl.bytes_max,
        document_bytes_max=document_bytes_max,
        duration_max_s=crawl.duration_max_s,
    )
    return CrawlSetup(policy, crawl.fetch_timeout_s, bounds)


def _signing(settings: Settings) -> "SigningService | None":
    catalog = settings.catalog
    if not catalog.signing:
        return None
    from tollgate.serve.catalog_auth.sign.file import SigningFileError, signing_service

    try:
        return signing_service(
            catalog.signing, _text_of, catalog.signing_keys, process_environment(), SystemClock()
        )
    except SigningFileError as error:
        raise WiringError(f"{settings.spelled('CATALOG_SIGNING')}: {error}") from None


def _text_of(file: str) -> str:
    return Path(file).expanduser().read_text("utf-8")
