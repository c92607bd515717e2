"""Calls to webhooks: how one is signed and made, and the worker that works through them."""
