"""Prompts, samplers and models of the command line, and answers on a terminal or in a file."""
