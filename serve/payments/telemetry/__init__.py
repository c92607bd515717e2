"""What operators see of payments: requests, shards, card networks and books, as numbers and lines
in the log. How these leave the machine is in `serve/ratelimit/sinks/`."""
