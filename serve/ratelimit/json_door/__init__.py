"""The JSON door (B16): what its calls mean, and the two ways they come, by itself and by Serve."""
