"""`tollgate catalog`: what the catalog-auth service knows, on files and without a server."""
