"""The HTTP interface: bodies, answers, errors and routes."""
