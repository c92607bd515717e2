"""Sources of rules: files in a folder, and the archive of the last good ones."""
