"""Credentials that the caller holds, by name: never a value, only that there is one.

A name is a scheme's (`login`: all that it takes) or one thing of it (`login.client_id`, as
`missing` calls it). With domains, what is held is only for hosts in them: `example.com` is for
itself and for `data.example.com`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tollgate.serve.catalog_auth.resolve.steps import Need

HELD_MAX = 1_000


@dataclass(frozen=True, slots=True)
class AvailableCredential:
    """`domains` empty: for any host."""

    name: str
    domains: tuple[str, ...] = ()

    def is_for(self, host: str) -> bool:
        return not self.domains or any(
            host == domain or host.endswith(f".{domain}") for domain in map(str.lower, self.domains)
        )


@dataclass(frozen=True, slots=True)
class AvailableCredentials:
    """All that the caller holds."""

    held: tuple[AvailableCredential, ...] = ()

    def has(self, need: Need, hosts: Iterable[str] = ()) -> bool:
        """Tells whether this is held, and may go to all of these hosts."""
        hosts = tuple(hosts)
        return any(
            held.name in (need.scheme, need.called) and all(held.is_for(host) for host in hosts)
            for held in self.held
        )

    def names(self, need: Need) -> bool:
        """Tells whether the caller named exactly this one thing."""
        return any(held.name == need.called for held in self.held)

    def may_send(self, scheme: str, host: str) -> bool:
        """Tells whether what comes of this scheme may go to this host."""
        own = [held for held in self.held if held.name == scheme]
        return not own or any(held.is_for(host) for held in own)


NOTHING_AVAILABLE = AvailableCredentials()
