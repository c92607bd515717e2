"""The page that browses an API: Swagger UI from this server alone, the same for every service."""
