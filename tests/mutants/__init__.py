"""Changes of csrc that the quick tests must notice."""
