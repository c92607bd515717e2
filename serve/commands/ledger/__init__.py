"""`tollgate ledger`: the books themselves, for whoever operates them."""
