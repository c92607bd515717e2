"""Secrets of an installation: keys, how they are minted, sealed, presented and last used."""
