"""The card of `tiny`: its page, its details, its figure, and the sampler files and results in the model's folder."""
