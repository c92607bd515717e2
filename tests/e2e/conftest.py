"""One Tollgate and one Envoy for the whole tier, started as an operator would start them.

A test that stops or secures a Tollgate starts its own. When a test fails, its report ends with what
all of them have written.
"""

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest

from tests.e2e.callers import own_connection
from tests.support.processes.envoy import Change, EnvoyProcess, as_it_is
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.service_stub import RateLimitServiceStub
from tests.support.servers.file_server import Seen, file_server
from tollgate.serve.payments.secrets.key_files import make_operator_key

SAMPLE_RULES = Path(__file__).parents[2] / "configs/ratelimit"
# The tests' own rules. Their windows are long, so that none ends in the middle of a test.
RULES = """\
domain: e2e
descriptors:
  - key: account
    rate_limit: {unit: year, requests_per_unit: 3}
  - key: tenant
    rate_limit: {unit: year, requests_per_unit: 1000000}
  - key: pair
    value: outer
    descriptors:
      - key: inner
        detailed_metric: true
        rate_limit: {name: nested, unit: year, requests_per_unit: 100}
  - key: free
    rate_limit: {unlimited: true}
  - key: tried
    shadow_mode: true
    rate_limit: {unit: year, requests_per_unit: 1}
"""

Start = Callable[[TollgateProcess], None]


class StartTollgate(Protocol):
    """Starts a Tollgate with these settings; `start`: otherwise than by its own `up`."""

    def __call__(
        self, settings: Mapping[str, str], start: Start = TollgateProcess.up
    ) -> AbstractContextManager[TollgateProcess]: ...


class StartEnvoy(Protocol):
    """Starts an Envoy in front of a Tollgate; `change` as in EnvoyProcess."""

    def __call__(
        self, tollgate: TollgateProcess, change: Change = as_it_is
    ) -> AbstractContextManager[EnvoyProcess]: ...


class HasOutput(Protocol):
    """A running peer whose output explains failures."""

    def output(self) -> str: ...


RUNNING = pytest.StashKey[list[HasOutput]]()


def running(session: pytest.Session) -> list[HasOutput]:
    """What runs at this moment. (Made when asked for: a run of the whole tree has begun before this
    file is read.)"""
    return session.stash.setdefault(RUNNING, [])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the guests of this tier's Tollgate, before `-m` looks: in a run of their own it is
    started once, and nobody keeps it running beside those who start their own."""
    for item in items:
        if "tollgate" in getattr(item, "fixturenames", ()) and is_of_this_tier(item):
            item.add_marker("guest")


def is_of_this_tier(item: pytest.Item) -> bool:
    """Whether its Tollgate is the one below, and none of its module's own."""
    return not hasattr(getattr(item, "module", None), "tollgate")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the output of everything that runs behind the report of a test that failed."""
    report = yield
    if report.failed:
        for peer in running(item.session):
            report.sections.append((type(peer).__name__, peer.output()))
    return report


@pytest.fixture(scope="session")
def start_tollgate(request: pytest.FixtureRequest) -> StartTollgate:
    """Starts a Tollgate in a context; at its end nothing of it is left."""

    @contextmanager
    def started(
        settings: Mapping[str, str], start: Start = TollgateProcess.up
    ) -> Iterator[TollgateProcess]:
        with tempfile.TemporaryDirectory(prefix="tollgate-") as folder:
            tollgate = TollgateProcess(Path(folder), settings)
            running(request.session).append(tollgate)
            try:
                start(tollgate)
                yield tollgate
            finally:
                running(request.session).remove(tollgate)
                tollgate.end()

    return started


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of rule files that `tollgate` watches: the samples and the tests' own."""
    folder = tmp_path_factory.mktemp("rules") / "config"
    shutil.copytree(SAMPLE_RULES, folder)
    (folder / "e2e.yaml").write_text(RULES)
    return folder


@pytest.fixture(scope="session")
def page_port() -> Iterator[int]:
    """The port of an empty page, which a browser finds under every name below `localhost`."""

    def empty_page(_: Seen) -> tuple[int, dict[str, str]]:
        return 200, {"Content-Type": "text/html", "body": "<!doctype html>"}

    with file_server(empty_page) as server:
        yield int(server.url.rpartition(":")[2])


@pytest.fixture(scope="session")
def tollgate(
    start_tollgate: StartTollgate, rules: Path, page_port: int
) -> Iterator[TollgateProcess]:
    """The Tollgate of this tier. Nobody stops it."""
    operator_key = rules.parent / "operator.key"
    make_operator_key(operator_key)
    settings = {
        "PAYMENTS_OPERATOR_KEY_FILE": str(operator_key),
        "RUNTIME_ROOT": str(rules.parent),
        "RUNTIME_APPDIRECTORY": rules.name,
        "RUNTIME_WATCH_ROOT": "false",
        "USE_PULLMETRICS": "true",
        "DRAIN_GRACE": "1s",
        "CATALOG_TRUSTED_ORIGINS": f"http://trusted.localhost:{page_port}",
    }
    with start_tollgate(settings) as tollgate:
        yield tollgate


@pytest.fixture(scope="session")
def start_envoy(
    request: pytest.FixtureRequest, envoy_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> StartEnvoy:
    """Starts an Envoy in front of a Tollgate, in a context."""

    @contextmanager
    def start(tollgate: TollgateProcess, change: Change = as_it_is) -> Iterator[EnvoyProcess]:
        folder = tmp_path_factory.mktemp("envoy") / "run"
        envoy = EnvoyProcess(envoy_binary, folder, tollgate.ports["GRPC_PORT"], change)
        running(request.session).append(envoy)
        try:
            envoy.start()
            yield envoy
        finally:
            envoy.end()
            running(request.session).remove(envoy)

    return start


@pytest.fixture(scope="session")
def envoy(tollgate: TollgateProcess, start_envoy: StartEnvoy) -> Iterator[EnvoyProcess]:
    """The Envoy of this tier, in front of `tollgate`."""
    with start_envoy(tollgate) as envoy:
        yield envoy


@pytest.fixture
def service(tollgate: TollgateProcess) -> Iterator[Any]:
    """A stub of the rate-limit service of `tollgate`."""
    with own_connection(tollgate.grpc_address) as channel:
        yield RateLimitServiceStub(channel)


@pytest.fixture
def http(tollgate: TollgateProcess) -> Iterator[httpx.Client]:
    """A client of the HTTP door of `tollgate`."""
    with httpx.Client(base_url=tollgate.url("PORT"), timeout=20) as client:
        yield client


@pytest.fixture
def debug(tollgate: TollgateProcess) -> Iterator[httpx.Client]:
    """A client of the debug port of `tollgate`."""
    with httpx.Client(base_url=tollgate.url("DEBUG_PORT"), timeout=60) as client:
        yield client
