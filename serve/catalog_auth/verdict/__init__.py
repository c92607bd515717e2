"""One document in, one verdict out: the report, the official schemas' word, and its formats."""
