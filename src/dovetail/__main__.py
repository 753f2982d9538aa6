"""`python -m dovetail` is `dovetail`."""

from __future__ import annotations

from dovetail.cli import main

main()
