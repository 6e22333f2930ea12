"""The card of a model: one page, its figure, its details, and the statistics they need."""
