"""The live page: decode in a browser, and watch the commits."""
