"""Constraints: from a regular expression, choices or a JSON schema to an automaton over the tokens of a model."""
