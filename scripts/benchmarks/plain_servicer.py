"""Registers the rate-limit service at Serve's own gRPC ingress, which imports this by its name."""

from typing import Any

import grpc

from tollgate.serve.ratelimit.codec.messages import METHOD_NAME, SERVICE_NAME


def add_to_server(servicer: Any, server: Any) -> None:
    """As generated code would, but that requests stay bytes: Serve pickles what it hands on."""
    method = grpc.unary_unary_rpc_method_handler(servicer.ShouldRateLimit)
    handler = grpc.method_handlers_generic_handler(SERVICE_NAME, {METHOD_NAME: method})
    server.add_generic_rpc_handlers((handler,))
