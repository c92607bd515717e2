"""`tollgate payments`: a demo, test data to start from, and the operator's key."""
