"""Benchmarks. They need the development environment and h2load."""
