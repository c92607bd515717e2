"""Test data from files, turned into orders; nothing here writes the books itself."""
