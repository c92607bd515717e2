"""Rules, from the text of a file to the limit that a descriptor meets; no counting."""
