"""Exit codes: 0 success, 1 a bug in uncode, 2 an error that the user can fix, 130 interrupted."""

INTERRUPTED = 130
