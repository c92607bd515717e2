"""Mail to people: letters, the mail server, and the folder where letters wait."""
