"""Copies of the books, segments shipped to a folder, and restoring from them."""
