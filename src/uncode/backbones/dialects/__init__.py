"""The models that the transformer runs: how LLaDA and Dream name, configure and frame things."""
