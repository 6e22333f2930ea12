"""Published samplers, their quirks, and controlled changes for experiments."""
