"""Verbs that evaluate models: runs, grades, reports, calibration."""
