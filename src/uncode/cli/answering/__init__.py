"""From the prompts, samplers and models of the command line to answers on a terminal or in a file."""
