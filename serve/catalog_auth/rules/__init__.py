"""The rules of the catalogue, a file for each subject; each ends with its RULES."""
