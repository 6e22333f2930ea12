"""From a request's body to rows of the engine, and from their steps to text."""
