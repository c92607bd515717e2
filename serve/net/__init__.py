"""Addresses, listening sockets and the HTTP client that calls addresses which others have told."""
