"""Models in normal form."""
