"""For operators: the process that sums the statistics and serves the debug and metrics ports."""
