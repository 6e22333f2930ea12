"""The whole analysis of the paper on one model: one run, all figures, and a report that says what agrees."""
