"""The payment page over HTTP, at `/pay/` of a node: whatever is asked for, a page for people comes.

no key, an unknown one, a bad query    says what is wrong (400, 404)
no value                               the till: the amount is typed first, then it comes back
else                                   the card; its script calls the API
"""

from collections.abc import Sequence
from http import HTTPStatus

from msgspec import Struct
from msgspec.json import decode
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tollgate.serve.payments.api.asgi import STORAGE_AWAY, Dispatcher
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.api.orders import RETRY_AFTER_S
from tollgate.serve.payments.api.rejections import TooMany
from tollgate.serve.payments.checkout.major_units import (
    AmountFault,
    major_text,
    minor_units,
    typed_decimal,
)
from tollgate.serve.payments.checkout.page.language import PageLanguage, language_of
from tollgate.serve.payments.checkout.page.link import (
    KEY_LENGTH_MAX,
    PARAMETERS,
    Fault,
    LinkFault,
    LinkQuery,
    PaymentLink,
    query_text,
    read_link,
    read_query,
)
from tollgate.serve.payments.checkout.page.rendering import (
    HEADERS,
    HTML,
    file_of_page,
    rendered,
)
from tollgate.serve.payments.checkout.page.view import (
    AwayView,
    fault_view,
    pay_view,
    till_view,
    typed_example,
)
from tollgate.serve.payments.network.card_network import PaymentRefused

PATH = "/pay"
TYPED = "typed"
_STATUS = {
    Fault.KEY_UNKNOWN: HTTPStatus.NOT_FOUND,
    Fault.CANNOT_PAY: HTTPStatus.FORBIDDEN,
}


class _Claim(Struct):
    canChargeCard: bool  # noqa: N815 - the wire's name


class _Shop(Struct, rename={"is_test": "test"}):
    """What a customer sees of a merchant, and what decides whether they can pay it."""

    descriptor: str
    currency: str
    is_test: bool
    claim: _Claim
    name: str = ""

    @property
    def shown(self) -> str:
        return self.name or self.descriptor


class PaymentPages:
    """Answers with pages. It changes nothing, and keeps nothing."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._context: ApiContext = dispatcher.context

    @property
    def routes(self) -> list[Route]:
        """Below the prefix of payments; HAProxy shows them at the root as well."""
        return [
            Route(PATH, self.slash, methods=["GET"]),
            Route(f"{PATH}/", self.page, methods=["GET"]),
            Route(f"{PATH}/{{name}}", self.file, methods=["GET"]),
        ]

    async def slash(self, request: Request) -> Response:
        """The page's files are beside it, which takes the slash at the end."""
        query = request.url.query
        where = f".{PATH}/?{query}" if query else f".{PATH}/"
        return self._answer(request, HTTPStatus.PERMANENT_REDIRECT, headers={"Location": where})

    async def file(self, request: Request) -> Response:
        found = file_of_page(request.path_params["name"])
        if found is None:
            return self._fault(request, [], HTTPStatus.NOT_FOUND)
        content, media_type = found
        cached = {"Cache-Control": "no-cache"}
        return self._answer(request, HTTPStatus.OK, content, media_type, cached)

    async def page(self, request: Request) -> Response:
        query = _query(request)
        try:
            await self._context.limits.admit(per_call("pages", address=self._address(request)))
            return await self._page(request, query)
        except TooMany as error:
            return self._away(
                request, HTTPStatus.TOO_MANY_REQUESTS, "away.too_often", error.retry_after_s
            )
        except STORAGE_AWAY as error:
            self._dispatcher.watch.note(error)
            return self._away(request, HTTPStatus.SERVICE_UNAVAILABLE, "away.text", RETRY_AFTER_S)

    async def _page(self, request: Request, query: LinkQuery) -> Response:
        shop = await self._shop(query)
        if isinstance(shop, LinkFault):
            status = _STATUS.get(shop.fault, HTTPStatus.BAD_REQUEST)
            return self._fault(request, [*query.faults, shop], status)
        link = read_link(query, self._context.reference.currencies, shop.currency)
        if not isinstance(link, PaymentLink):
            return self._fault(request, link)
        if link.is_test is not shop.is_test:
            mixed = Fault.IS_TEST if shop.is_test else Fault.IS_LIVE
            return self._fault(request, [LinkFault(mixed, "test")])
        network = self._context.networks.of(is_test=shop.is_test)
        if isinstance(network, PaymentRefused) or not shop.claim.canChargeCard:
            return self._fault(request, [LinkFault(Fault.CANNOT_PAY)], HTTPStatus.FORBIDDEN)
        if link.amount is None:
            return self._till(request, query, link, shop)
        fields = {name: query.get(name) for name in PARAMETERS}
        another = f"./?{query_text(fields | {'value': '', 'till': ''})}" if link.is_till else ""
        language = _language(request)
        api = request.scope.get("root_path", "")
        view = pay_view(link, link.amount, shop.shown, api, another, language)
        return self._html(request, HTTPStatus.OK, rendered("pay.html", language, view))

    async def _shop(self, query: LinkQuery) -> _Shop | LinkFault:
        key = query.get("key")
        if not key:
            return LinkFault(Fault.KEY_MISSING, "key")
        row = None
        if len(key) <= KEY_LENGTH_MAX:
            row = await self._context.store.merchant_by_public_key(key)
        if row is None:
            return LinkFault(Fault.KEY_UNKNOWN, "key", key[:KEY_LENGTH_MAX])
        return decode(row.document, type=_Shop)

    def _till(self, request: Request, query: LinkQuery, link: PaymentLink, shop: _Shop) -> Response:
        """The till; with an amount typed in it, the way to the card."""
        language = _language(request)
        fields = {name: query.get(name) for name in PARAMETERS} | {"value": "", "till": ""}
        typed, problem = query.get(TYPED), ""
        if TYPED in query.fields:
            exponent = link.currency.exponent
            found = minor_units(typed_decimal(typed, language.decimal_mark) or "0", exponent)
            if isinstance(found, int):
                typed_fields = fields | {"value": major_text(found, exponent), "till": "1"}
                where = {"Location": f"./?{query_text(typed_fields)}"}
                return self._answer(request, HTTPStatus.SEE_OTHER, headers=where)
            problem = _typed_problem(found, link, language)
        shown = [(name, value) for name, value in fields.items() if value]
        view = till_view(link, shop.shown, shown, language, typed, problem)
        status = HTTPStatus.BAD_REQUEST if problem else HTTPStatus.OK
        return self._html(request, status, rendered("till.html", language, view))

    def _fault(
        self,
        request: Request,
        faults: Sequence[LinkFault],
        status: HTTPStatus = HTTPStatus.BAD_REQUEST,
    ) -> Response:
        language = _language(request)
        text = rendered("fault.html", language, fault_view(faults, language))
        return self._html(request, status, text)

    def _away(self, request: Request, status: HTTPStatus, told: str, seconds: int) -> Response:
        language = _language(request)
        text = rendered("away.html", language, AwayView(told, seconds))
        return self._html(request, status, text, {"Retry-After": str(seconds)})

    def _html(
        self, request: Request, status: HTTPStatus, text: str, more: dict[str, str] | None = None
    ) -> Response:
        headers = {"Content-Language": _language(request).tag, **(more or {})}
        return self._answer(request, status, text.encode(), HTML, headers)

    def _answer(
        self,
        request: Request,
        status: HTTPStatus,
        content: bytes = b"",
        media_type: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Response:
        added = self._dispatcher.added(self._dispatcher.request_id(request.scope))
        own = {"X-Request-ID": added} if added else {}
        return Response(content, status, HEADERS | own | (headers or {}), media_type)

    def _address(self, request: Request) -> str:
        return self._dispatcher.address(request.scope)


def _query(request: Request) -> LinkQuery:
    return read_query(request.scope["query_string"].decode("utf-8", "replace"))


def _language(request: Request) -> PageLanguage:
    accepted = request.headers.get("accept-language", "")
    return language_of(_query(request).get("locale"), accepted)


def _typed_problem(fault: AmountFault, link: PaymentLink, language: PageLanguage) -> str:
    name, decimals = fault.value, link.currency.exponent
    if fault is AmountFault.TOO_FINE and not decimals:
        name = "too_fine_whole"
    return language.text(
        f"typed.{name}",
        currency=link.currency.code,
        decimals=decimals,
        example=typed_example(link.currency, language),
    )
