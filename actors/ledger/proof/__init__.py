"""Evidence that the books are sound: anchors, rebuilt tables, verification; nothing is mended."""
