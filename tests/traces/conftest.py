"""What the tests of traces share: small files and the public data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trace_support import public_data


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """Write a small trace and give its path."""

    def write(text: str, name: str = "jobs.csv") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def shared() -> Path:
    """The public data beside the project."""
    return public_data()
