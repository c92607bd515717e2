"""Sums what all processes counted, for operators, and replaces actors that hang; the ports that
show it are in `serve/`."""
