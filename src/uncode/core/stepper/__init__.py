"""The loop: one step of a batch, and the state between steps."""
