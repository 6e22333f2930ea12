"""Reports of evaluation runs: numbers from samples, paired tests, tables, and the formats they are written in."""
