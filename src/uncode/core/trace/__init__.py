"""What a decode leaves: records of rows, traces, and their schema."""
