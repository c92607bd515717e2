"""The answers of the official schemas, without the schemas: bug for bug, and offline."""
