"""Views of traces as text and as HTML pages. The input is plain data (`Trace.row`)."""
