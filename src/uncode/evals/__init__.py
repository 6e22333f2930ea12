"""Benchmarks: tasks, graders, the sandbox."""
