"""The payment page that links lead to: its query, words and amounts; templates lie beside."""
