"""Sums what all processes counted, for operators; the ports that show it are in `serve/`."""
