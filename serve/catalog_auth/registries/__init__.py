"""Names that others have registered or made well known, as data: no rule has a table of its own."""
