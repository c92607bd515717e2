"""The vocabulary and arithmetic of the books: money, lots, transactions, commands, events."""
