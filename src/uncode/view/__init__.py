"""Views of traces as text, as HTML pages and as animated pictures. The input is plain data (`Trace.row`)."""
