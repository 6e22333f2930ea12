"""Adapters: our models and tasks in other people's programs."""
