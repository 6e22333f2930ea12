"""Token frequencies over a corpus."""

from .compare import Comparison, compare
from .fingerprint import fingerprint
from .names import UnnamedTable, as_table
from .provenance import Provenance
from .table import FrequencyTable

__all__ = ["Comparison", "FrequencyTable", "Provenance", "UnnamedTable", "as_table", "compare", "fingerprint"]
