"""A customer's way to pay: the vault, hints, steps, 3-D Secure, the page. No books here."""
