"""Counter partitions: the Ray actors that own counters, and the store that reaches them."""
