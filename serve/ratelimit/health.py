"""The health of this process: whether it should get traffic (B17).

    healthy = backend and config and sigterm

    backend   starts healthy, or unhealthy where the counters are in a store that must be reached
              first; its owner says when they are in reach, and when not
    config    counts only where at least one configured domain is asked for, or a control plane is
              waited for; starts unhealthy
    sigterm   starts healthy; unhealthy once shutting down, and never back

Listeners hear the overall state, in order, each time it turns.
"""

from collections.abc import Callable
from enum import Enum
from threading import RLock

HealthListener = Callable[[bool], None]


class Component(Enum):
    """The components of the overall state; the values are the names in B17."""

    BACKEND = "backend"
    CONFIG = "config"
    SIGTERM = "sigterm"


class Health:
    """The components' states and their conjunction. Thread-safe, and safe in a signal handler.

    `needs_domains`: rules without any are as bad as none, where the config component counts.
    """

    def __init__(
        self, *, needs_config: bool = False, needs_domains: bool = True, has_backend: bool = True
    ) -> None:
        self._states = {Component.BACKEND: has_backend, Component.SIGTERM: True}
        if needs_config:
            self._states[Component.CONFIG] = False
        self._listeners: list[HealthListener] = []
        self._needs_domains = needs_domains
        # Reentrant, for a signal may arrive in a thread that holds it.
        self._lock = RLock()

    @property
    def is_healthy(self) -> bool:
        return all(self._states.values())

    def set(self, which: Component, *, is_healthy: bool) -> None:
        """Sets one component. Nothing happens for a disabled one, nor for SIGTERM once it came."""
        with self._lock:
            if which not in self._states or (
                which is Component.SIGTERM and not self._states[which]
            ):
                return
            was_healthy = self.is_healthy
            self._states[which] = is_healthy
            if self.is_healthy != was_healthy:
                for listener in tuple(self._listeners):
                    listener(self.is_healthy)

    def take_rules(self, *, has_domains: bool) -> None:
        """Sets the config component: rules have come into force."""
        self.set(Component.CONFIG, is_healthy=has_domains or not self._needs_domains)

    def subscribe(self, listener: HealthListener) -> Callable[[], None]:
        """Calls `listener` at every turn from now on, in the thread that turned the state.

        Returns what ends the subscription. A listener must be quick and must not raise.
        """
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return end
