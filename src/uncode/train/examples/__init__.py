"""Training examples: drawn, tokenized, stored and batched."""
