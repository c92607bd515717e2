"""How often the API may be called, and how many merchants may wait; no rule of a book is here."""
