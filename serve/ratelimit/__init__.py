"""The rate-limit doors: gRPC, JSON and the debug port."""
