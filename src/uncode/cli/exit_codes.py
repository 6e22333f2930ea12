"""Exit codes: 0 done, 1 a fault of ours, 2 an error the user can mend, 130 interrupted."""

INTERRUPTED = 130
