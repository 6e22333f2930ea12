"""Figures and measures of decoding, from traces alone."""
