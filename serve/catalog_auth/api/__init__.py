"""The catalog-auth service over HTTP: calls in, verdicts out, problems as documents."""
