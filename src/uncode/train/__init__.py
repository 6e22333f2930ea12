"""The config that made the embedded model: curriculum, tokenizer, shards, objective, training run."""
