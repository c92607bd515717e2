"""Small documents of which the examples of rules are made."""
