"""What the core needs around it: arguments, files, memory, threads, transfers."""
