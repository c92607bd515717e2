"""The API's document (OpenAPI 3.1): its schemas and how it is put together."""
