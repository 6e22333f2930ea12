"""`python -m studies.site FOLDER`: the pages of the site, for mkdocs."""

import sys
from pathlib import Path

from .staging import stage

if __name__ == "__main__":
    stage(Path(sys.argv[1]))
