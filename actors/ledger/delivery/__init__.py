"""The law of webhooks: what goes out, in which order, what is tried again and when; no sockets."""
