"""One chain of schemes made into the steps that lead to the target (part D, Resolving)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tollgate.serve.catalog_auth.document.document import Scheme
from tollgate.serve.catalog_auth.objects.urls import https_url
from tollgate.serve.catalog_auth.resolve.available_credentials import AvailableCredentials
from tollgate.serve.catalog_auth.resolve.chains import Chain, Link
from tollgate.serve.catalog_auth.resolve.credentials import (
    Credential,
    UnusableFlow,
    bearer,
    hosts_of,
    http_credential,
    is_callable_url,
    key_credential,
    sent,
)
from tollgate.serve.catalog_auth.resolve.oauth import (
    TOKEN_NAMES,
    Obtained,
    login,
    refreshed_token,
    token_of_flow,
)
from tollgate.serve.catalog_auth.resolve.object_stores import Store, environment_step
from tollgate.serve.catalog_auth.resolve.signed_urls import signed_fetch
from tollgate.serve.catalog_auth.resolve.steps import (
    BrowserStep,
    CredentialRule,
    DescribedStep,
    EnvironmentStep,
    HttpStep,
    Need,
    ObjectStep,
    OidcStep,
    RecipeStep,
    StepRequest,
    holds_placeholder,
    placeholder,
)
from tollgate.serve.catalog_auth.resolve.target import FoundTarget

# The URL to fetch where the document has none: an item asset is the promise of one.
NO_HREF = placeholder("target", "href")
LOOKS_LIKE_A_PLACEHOLDER = "a text of the document looks like a placeholder of these steps"
# Of what a publisher says about a scheme, so many characters are passed on.
DESCRIPTION_LENGTH_MAX = 2_000


@dataclass(slots=True)
class AccessPlan:
    """The steps of an alternative as they are put together. `problem`: why they cannot be done;
    `findings`: the rules behind that, or behind a warning."""

    aimed: FoundTarget
    holdings: AvailableCredentials
    steps: list[RecipeStep] = field(default_factory=list)
    problem: str | None = None
    findings: list[str] = field(default_factory=list)
    _taken: Counter[str] = field(default_factory=Counter)

    def name(self, wanted: str) -> str:
        """A step's id: the wanted one, numbered when it is there already."""
        self._taken[wanted] += 1
        count = self._taken[wanted]
        return wanted if count == 1 else f"{wanted}{count}"

    @property
    def url(self) -> str:
        return NO_HREF if self.aimed.href is None else self.aimed.href

    def stop(self, problem: str, *rules: str) -> None:
        """Says in words what a program cannot do; the first problem counts."""
        self.findings += rules
        if self.problem is None:
            self.problem = problem


def planned(
    chain: Chain, store: Store | None, aimed: FoundTarget, holdings: AvailableCredentials
) -> AccessPlan:
    """The steps of a chain of which the last scheme gives access."""
    plan = AccessPlan(aimed, holdings)
    credential: Credential | None = None
    *inputs, last = chain.links
    if chain.problem is not None:
        _say_broken(plan, chain)
    for link in inputs:
        if plan.problem is None:
            credential = _obtained(plan, link, credential, "id_token")
    if plan.problem is None:
        _access(plan, last, credential, store)
    return plan


def planned_public(aimed: FoundTarget, store: Store | None) -> AccessPlan:
    """No scheme is needed: a plain GET, and no signatures for a store's own client."""
    plan = AccessPlan(aimed, AvailableCredentials())
    url: str | None = plan.url
    if store is not None and not store.location.is_guess:
        plan.steps.append(_environment(plan, store, None))
        if not plan.url.startswith("http"):
            url = https_url(store.location)
        if store.is_requester_pays:
            plan.findings.append("T05")
    if url is None:
        plan.stop("the account of the container is not known, so there is no URL to call")
        url = plan.url
    rule = CredentialRule((), hosts_of(url), may_use_default=True)
    step = HttpStep(id=plan.name("fetch"), request=StepRequest("GET", url), credentials=rule)
    plan.steps.append(step)
    _check_reachable(plan, url)
    return plan


def missing(plan: AccessPlan) -> tuple[str, ...]:
    """The needs that the caller does not meet yet, each once."""
    names = [
        need.called
        for step in plan.steps
        for need, hosts in needs_of(step)
        if not plan.holdings.has(need, hosts)
    ]
    for step in plan.steps:
        if isinstance(step, HttpStep) and not step.needs:
            hosts = step.credentials.hosts
            names += [
                of
                for of in step.credentials.of
                if not all(plan.holdings.may_send(of, host) for host in hosts)
            ]
    return tuple(dict.fromkeys(names))


def needs_of(step: RecipeStep) -> Iterator[tuple[Need, tuple[str, ...]]]:
    """The needs of a step, and the hosts that it goes to."""
    match step:
        case OidcStep():
            for inner in step.steps:
                yield from needs_of(inner)
        case HttpStep():
            yield from ((need, step.credentials.hosts) for need in step.needs.values())
        case BrowserStep():
            hosts = hosts_of(step.request.url)
            yield from ((need, hosts) for need in step.needs.values())
        case EnvironmentStep():
            yield from ((need, step.hosts) for need in step.needs.values())


def _obtained(
    plan: AccessPlan, link: Link, input_: Credential | None, wanted: str
) -> Credential | None:
    """The credential that a scheme gives, its steps added; None when the plan had to stop."""
    scheme = link.scheme
    got: Obtained | Credential | UnusableFlow
    given = input_.value if input_ is not None else None
    match scheme.type:
        case "http":
            got = http_credential(scheme, given)
        case "apiKey":
            got = key_credential(scheme, given)
        case "oauth2":
            got = _oauth_token(plan, link, input_)
        case "openIdConnect":
            got = _held_token(plan, scheme, wanted) or login(scheme, wanted, plan.name)
        case _:
            got = UnusableFlow(f"a scheme of type {scheme.type} gives no token")
            plan.findings.append("R15")
    if isinstance(got, UnusableFlow):
        plan.stop(f"{scheme.name}: {got.reason}")
        return None
    if isinstance(got, Credential):
        return got
    steps, credential = got
    plan.steps += steps
    return credential


def _oauth_token(
    plan: AccessPlan, link: Link, input_: Credential | None
) -> Obtained | Credential | UnusableFlow:
    scheme = link.scheme
    held = _held_token(plan, scheme, "access_token")
    if held is not None:
        return held
    if link.flow is None:
        return UnusableFlow("it has no flows")
    if plan.holdings.names(Need(scheme.name, "refresh_token")):
        return refreshed_token(scheme, link.flow, plan.name)
    got = token_of_flow(scheme, link.flow, input_, plan.name)
    if link.flow in ("implicit", "password"):
        plan.findings.append("O01")
    return got


def _held_token(plan: AccessPlan, scheme: Scheme, name: str) -> Credential | None:
    """A token that the caller has already: then there is nothing to do for it."""
    if not plan.holdings.names(Need(scheme.name, name)):
        return None
    return bearer(scheme.name, None, TOKEN_NAMES[name], name)


def _access(plan: AccessPlan, link: Link, input_: Credential | None, store: Store | None) -> None:
    scheme = link.scheme
    match scheme.type:
        case "s3":
            _read_object(plan, scheme, input_, store)
        case "signedUrl" if link.flow is None:
            plan.stop("it has no flows")
        case "signedUrl":
            assert link.flow is not None
            steps = signed_fetch(scheme, link.flow, plan.aimed, input_, plan.name)
            _check_href(plan)
            if isinstance(steps, UnusableFlow):
                plan.stop(steps.reason)
            else:
                plan.steps += steps
                if any(produced.is_assumed for produced in steps[0].produces):
                    plan.findings.append("G04")
        case "http" | "apiKey" | "oauth2" | "openIdConnect":
            credential = _obtained(plan, link, input_, "access_token")
            if credential is not None:
                plan.steps.append(
                    sent(plan.name("fetch"), StepRequest("GET", plan.url), credential)
                )
                _check_reachable(plan, plan.url)
        case _:
            plan.stop("its type is not one of the extension's: only people know what it means")
            plan.findings.append("C03")


def _read_object(
    plan: AccessPlan, scheme: Scheme, input_: Credential | None, store: Store | None
) -> None:
    _check_href(plan)
    if plan.problem is not None:
        return
    if store is None:
        plan.stop("the href is not an object's, so there is nothing to sign a request for", "T01")
        return
    if input_ is not None:
        plan.stop("how temporary keys come of a token is not defined by the extension")
        return
    environment = _environment(plan, store, scheme.name)
    warnings: tuple[str, ...] = ()
    if store.location.is_guess:
        warnings = ("bucket and key are a guess: the host's first label, and the path",)
    fetch = ObjectStep(
        id=plan.name("fetch"),
        location=store.location,
        is_requester_pays=store.is_requester_pays,
        hosts=environment.hosts,
        warnings=warnings,
    )
    plan.steps += [environment, fetch]


def _environment(plan: AccessPlan, store: Store, scheme: str | None) -> EnvironmentStep:
    has_profile = scheme is not None and plan.holdings.names(Need(scheme, "profile"))
    step = environment_step(plan.name("environment"), store, scheme, has_profile)
    own = {placeholder(step.id, name) for name in step.needs}
    location = store.location
    texts = [location.bucket, location.key, *step.environment.values()]
    if any(holds_placeholder(text) for text in texts if text not in own):
        plan.stop(LOOKS_LIKE_A_PLACEHOLDER)
    return step


def _check_reachable(plan: AccessPlan, url: str) -> None:
    _check_href(plan)
    if plan.aimed.is_absolute and not is_callable_url(url):
        rules = () if url.startswith("http") else ("T04",)
        plan.stop("the href is no http(s) URL, so there is no request to make", *rules)


def _check_href(plan: AccessPlan) -> None:
    """Stops a plan that has nothing to get at, or cannot say what."""
    if plan.aimed.href is None:
        plan.stop("there is no href: the items' own assets have it")
    elif not plan.aimed.is_absolute:
        plan.stop("the href is relative, and nothing tells where the document was found")
    elif holds_placeholder(plan.aimed.href):
        plan.stop(LOOKS_LIKE_A_PLACEHOLDER)
    if plan.aimed.is_withheld:
        plan.stop("the href carries a credential, which is withheld here")


def _say_broken(plan: AccessPlan, chain: Chain) -> None:
    reasons = {
        "R13": "none of the schemes that it takes its input from exists",
        "R14": "its input comes of itself: the schemes refer to each other in a circle",
        "R17": "its input is too many schemes away",
    }
    assert chain.problem is not None
    plan.stop(reasons[chain.problem], chain.problem)


def steps_of(plan: AccessPlan, scheme: Scheme | None) -> tuple[RecipeStep, ...]:
    """The plan's steps; when a program cannot do them, a person gets to know why not, and what the
    publisher has to say."""
    if plan.problem is None:
        return tuple(plan.steps)
    text = f"Not to be done by a program: {plan.problem}."
    description = scheme.value.get("description") if scheme is not None else None
    if isinstance(description, str) and description.strip():
        said = description.strip()
        mark = "…" if len(said) > DESCRIPTION_LENGTH_MAX else ""
        text = f"{text} The publisher says: {said[:DESCRIPTION_LENGTH_MAX]}{mark}"
    return (*plan.steps, DescribedStep(id=plan.name("describe"), text=text))
