"""S, E, D: the shape of schemes, flows and descriptions, and where they are declared."""
