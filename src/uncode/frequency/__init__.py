"""Token frequencies over a corpus."""

from .table import FrequencyTable, UnnamedTable, as_table

__all__ = ["FrequencyTable", "UnnamedTable", "as_table"]
