"""What the official schemas say of a document, without the schemas: bug for bug, and offline."""
