"""Watching rules: when to load them, what is in force, and who is told."""
