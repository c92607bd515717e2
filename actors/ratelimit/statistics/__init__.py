"""Statistics: tallies where something happens, totals over all processes."""
