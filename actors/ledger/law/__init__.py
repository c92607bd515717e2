"""The vocabulary and arithmetic of the books: money, lots, accounts, commands, events; no state."""
