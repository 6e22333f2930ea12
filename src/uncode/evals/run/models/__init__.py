"""Models under evaluation: masked diffusion models on the engine, and autoregressive ones."""
