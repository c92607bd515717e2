"""Repairs of documents as JSON Patches, and moving them to another version."""
