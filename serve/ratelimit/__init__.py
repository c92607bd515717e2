"""The rate limit to the outside: gRPC, JSON, rule sources, statistics and the debug port."""
