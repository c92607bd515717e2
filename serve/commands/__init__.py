"""The commands that people type: one module for each command of `tollgate`."""
