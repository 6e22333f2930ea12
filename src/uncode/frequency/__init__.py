"""Token frequencies over a corpus."""

from .table import FrequencyTable, as_table

__all__ = ["FrequencyTable", "as_table"]
