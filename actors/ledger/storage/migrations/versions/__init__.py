"""One revision in each module, in the order of their names."""
