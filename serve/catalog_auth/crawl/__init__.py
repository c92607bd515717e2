"""Following a catalog's links, under bounds; every address is judged before it is dialled."""
