"""Counting tokens over a corpus: in processes or on Ray, with checkpoints."""
