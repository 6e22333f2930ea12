"""A file per verb: its options, and what it asks for."""
