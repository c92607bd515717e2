"""Counting in Memcached (B11): what is read and written, the nodes, and the way to each of them."""
