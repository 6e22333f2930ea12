"""Text in, text out: prompts and gaps, generation, likelihood, thresholds, the choice of an order."""
