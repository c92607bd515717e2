"""The commands that a book accepts, a file for each subject; nothing here changes state."""
