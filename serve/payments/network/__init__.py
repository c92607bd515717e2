"""Card networks: the port, the simulator behind it, and cards as they come in."""
