"""The config watcher: loads rules when they change and tells every front."""
