"""Sources of rules: files in a folder, a control plane, and the archive of the last good ones."""
