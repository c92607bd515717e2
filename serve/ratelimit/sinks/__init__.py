"""Sinks of statistics: statsd and DogStatsD servers, Prometheus, JSON lines; what is counted is
decided elsewhere."""
