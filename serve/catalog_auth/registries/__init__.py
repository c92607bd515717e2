"""What others have registered or made well known, as data: no rule reads a table of its own."""
