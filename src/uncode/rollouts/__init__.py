"""Rollouts for reinforcement learning: many samples of each prompt, and their log-probabilities under new weights."""
