"""Overall health, by the states of the components (B17)."""

import pytest

from tollgate.serve.ratelimit.health import Component, Health

BACKEND, CONFIG, SIGTERM = Component.BACKEND, Component.CONFIG, Component.SIGTERM


def test_without_a_config_component_it_starts_healthy() -> None:
    assert Health().is_healthy


def test_the_backend_turns_it_both_ways() -> None:
    health = Health()
    seen = []
    for is_healthy in (True, False, True):
        health.set(BACKEND, is_healthy=is_healthy)
        seen.append(health.is_healthy)
    assert seen == [True, False, True]


def test_a_config_component_starts_unhealthy_and_every_component_counts() -> None:
    health = Health(needs_config=True)
    seen = [health.is_healthy]
    for which, is_healthy in (
        (BACKEND, True),
        (CONFIG, True),
        (BACKEND, False),
        (BACKEND, True),
        (CONFIG, False),
    ):
        health.set(which, is_healthy=is_healthy)
        seen.append(health.is_healthy)
    assert seen == [False, False, True, False, True, False]


@pytest.mark.parametrize(
    ("needs_domains", "seen"), [(True, [False, True, False]), (False, [True, True, True])]
)
def test_rules_without_domains_are_as_bad_as_none_where_domains_are_asked_for(
    needs_domains: bool, seen: list[bool]
) -> None:
    health = Health(needs_config=True, needs_domains=needs_domains)
    assert not health.is_healthy
    found = []
    for has_domains in (False, True, False):
        health.take_rules(has_domains=has_domains)
        found.append(health.is_healthy)
    assert found == seen


def test_a_disabled_component_has_no_say() -> None:
    health = Health()
    health.set(CONFIG, is_healthy=False)
    assert health.is_healthy


def test_sigterm_never_comes_back() -> None:
    health = Health()
    health.set(SIGTERM, is_healthy=False)
    health.set(SIGTERM, is_healthy=True)
    assert not health.is_healthy


def test_listeners_hear_each_turn_and_nothing_else() -> None:
    health = Health(needs_config=True)
    heard: list[bool] = []
    end = health.subscribe(heard.append)
    health.set(BACKEND, is_healthy=True)
    health.set(CONFIG, is_healthy=True)
    health.set(CONFIG, is_healthy=True)
    health.set(BACKEND, is_healthy=False)
    health.set(CONFIG, is_healthy=False)
    health.set(CONFIG, is_healthy=True)
    assert heard == [True, False]
    end()
    health.set(BACKEND, is_healthy=True)
    assert heard == [True, False]
    assert health.is_healthy


def test_a_listener_may_end_its_subscription_and_read_the_state() -> None:
    health = Health()
    heard: list[tuple[bool, bool]] = []

    def once(is_healthy: bool) -> None:
        heard.append((is_healthy, health.is_healthy))
        end()

    end = health.subscribe(once)
    health.set(BACKEND, is_healthy=False)
    health.set(BACKEND, is_healthy=True)
    assert heard == [(False, False)]
