"""Lanes: rows that share a sampler, and what a lane keeps: memory of pieces, sessions of probes and draft steps."""
