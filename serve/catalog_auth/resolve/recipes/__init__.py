"""An alternative as something a person can copy: for a shell, for Python, for GDAL."""
