"""Catalog auth: what a catalog document says about access to its assets, checked and put to use."""
