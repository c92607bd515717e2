"""One merchant's book as a pure machine: decide, evolve, project; no storage and no Ray."""
