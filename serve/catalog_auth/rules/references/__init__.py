"""R: references to schemes, chains of schemes, and what documents above make one expect."""
