"""The paper's tables as data, with the figures that cannot be right."""

from .tables import Figure, PaperTables, paper_tables

__all__ = ["Figure", "PaperTables", "paper_tables"]
