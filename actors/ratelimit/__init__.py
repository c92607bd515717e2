"""Rate limits: rules, matching, counting, decisions, and the Ray actors that own the counters."""
