"""Training of the embedded model: config, curriculum, tokenizer, shards, objective, training run."""
