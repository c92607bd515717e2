"""H, K, O, G, T, C: the types of schemes, a file for each."""
