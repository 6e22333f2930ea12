"""`python -m uncode.cli`: the command line without an installed script."""

from . import main

main()
