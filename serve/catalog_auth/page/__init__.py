"""The page for people: a document in, both verdicts out; its templates and styles lie beside."""
