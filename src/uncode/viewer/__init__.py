"""Traces to look at: they come in as plain data (`Trace.row`) and leave as text and pages."""
