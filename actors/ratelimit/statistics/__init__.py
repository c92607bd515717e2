"""What processes have counted: tallies where it happens, totals over all of them, latencies."""
