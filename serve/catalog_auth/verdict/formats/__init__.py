"""Verdicts for people and tools: text, SARIF, and notes for a code host."""
