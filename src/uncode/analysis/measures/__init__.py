"""What the figures show: one class per figure, to which traces are added one by one."""
