"""Counters in Redis: its commands, its connections, a server or a cluster of them, the store."""
