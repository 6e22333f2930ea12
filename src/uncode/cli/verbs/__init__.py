"""The verbs: one file each, with its options."""
