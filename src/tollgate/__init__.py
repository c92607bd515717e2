"""Tollgate: payments, rate limits and catalog authentication on Ray.

`actors` holds state and its rules, `serve` whatever talks to the outside.
"""
