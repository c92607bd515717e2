"""A catalog document: decoded, walked, its fields and where they stand."""
