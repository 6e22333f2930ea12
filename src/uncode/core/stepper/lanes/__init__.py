"""Rows that share a sampler: how they join, what their pieces remember, and how a step is decided for them."""
