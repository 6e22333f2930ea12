"""`python -m uncode.cli`, where nothing is installed."""

from . import main

main()
