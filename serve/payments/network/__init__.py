"""Card networks: what they are asked, the simulator of one, and cards as they come in."""
