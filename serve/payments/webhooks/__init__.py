"""Calls to webhooks: how one is signed and made, and the pump that works through them."""
