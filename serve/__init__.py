"""Doors: whatever talks to the outside. `wiring.py` composes the system."""
