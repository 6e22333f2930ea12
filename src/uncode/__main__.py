"""`python -m uncode`, and `accelerate launch -m uncode`."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()
