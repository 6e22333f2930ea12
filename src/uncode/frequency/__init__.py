"""Token frequencies over a corpus."""

from ..core.pieces.tables import UnnamedTable
from .compare import TableComparison, compare
from .fingerprint import fingerprint
from .names import as_table
from .provenance import Provenance
from .table import FrequencyTable

__all__ = ["FrequencyTable", "Provenance", "TableComparison", "UnnamedTable", "as_table", "compare", "fingerprint"]
