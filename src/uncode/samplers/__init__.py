"""Published samplers, their quirks, and edits made to learn something."""
