"""A DNS server on the loopback that knows the SRV records that a test gives it."""

import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import dns.flags
import dns.message
import dns.rcode
import dns.resolver
import dns.rrset

from tests.support.waiting import PATIENCE_S


@dataclass
class NameServer:
    """`records` by name: `priority weight port target` each; `failure`: what it answers instead."""

    port: int
    records: dict[str, Sequence[str]] = field(default_factory=dict)
    failure: dns.rcode.Rcode | None = None
    asked: int = 0

    @property
    def resolver(self) -> dns.resolver.Resolver:
        """It asks this server and no other."""
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = self.port
        resolver.timeout = PATIENCE_S
        return resolver

    def reply(self, wire: bytes) -> bytes:
        query = dns.message.from_wire(wire)
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        name = query.question[0].name
        records = self.records.get(name.to_text().rstrip("."))
        if self.failure is not None:
            reply.set_rcode(self.failure)
        elif records is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        else:
            reply.answer.append(dns.rrset.from_text_list(name, 60, "IN", "SRV", records))
        self.asked += 1
        return reply.to_wire()


@contextmanager
def name_server() -> Iterator[NameServer]:
    """One for as long as the block lasts."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            wire, connection = self.request
            connection.sendto(names.reply(wire), self.client_address)

    with socketserver.ThreadingUDPServer(("127.0.0.1", 0), Handler) as server:
        names = NameServer(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield names
        finally:
            server.shutdown()
            thread.join()
