"""Where statistics go: Prometheus and JSON lines; what is counted is decided elsewhere."""
