"""Evaluation runs: configs, the cells of a table, the run folder, and the runner that fills it."""
