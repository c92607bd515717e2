"""The money of the books, added up again by arithmetic that nothing else uses."""
