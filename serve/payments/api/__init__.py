"""The payments API over HTTP: from a request to an order, and from its outcome to a reply."""
