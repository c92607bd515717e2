"""Where rules come from: files in a folder, and the archive of the last good ones."""
