"""Lending: how a front counts for itself what a partition owns. Pure machines; no Ray, no clock.

The simulation tests run them; their processes are in `lent_counting/`.
"""
