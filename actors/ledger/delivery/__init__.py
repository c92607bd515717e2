"""The law of webhooks: what is due, when it is tried again, what is a dead letter; no sockets."""
