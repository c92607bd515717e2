"""Object stores: what a URL says about bucket and key, and how one is written."""
