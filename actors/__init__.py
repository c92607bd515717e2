"""State and its rules: whatever owns state lives here, with the pure rules of that state."""
