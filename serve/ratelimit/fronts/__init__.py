"""Listening gRPC sockets that hand raw requests, in batches, to one function; no decisions."""
