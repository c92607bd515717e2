"""Pages in frames, of banks that are only played, and what such a page must know."""
