"""Files that the card network sends back, read and matched with the books: disputes, frauds and
settlements. What a record changes is decided in the book, and by nothing here."""
