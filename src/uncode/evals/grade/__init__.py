"""Shared code of the graders: find the answer in a text, read it, compare it."""
