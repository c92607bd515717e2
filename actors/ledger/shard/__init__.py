"""The single writer of many books: its pipeline, its actor, and the way of an order to it."""
