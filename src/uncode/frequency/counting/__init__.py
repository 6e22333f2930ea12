"""Counting of tokens over a corpus: on one machine or on Ray, with checkpoints."""
