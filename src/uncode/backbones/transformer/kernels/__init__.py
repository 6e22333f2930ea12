"""Triton kernels: what the modules of the same name compute in plain torch."""
