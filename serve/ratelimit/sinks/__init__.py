"""Sinks of statistics: Prometheus and JSON lines; what is counted is decided elsewhere."""
