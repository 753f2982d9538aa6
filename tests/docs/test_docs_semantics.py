"""Every worked case of `docs/design/semantics.md` happens as the page says."""

import re
from pathlib import Path

import pytest
import rows
from doc_support import ROOT

PAGE = ROOT / "docs" / "design" / "semantics.md"
BLOCKS = re.findall(r"^```rows\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
ROWS = [line for block in BLOCKS for line in block.splitlines()]


@pytest.mark.parametrize("row", ROWS)
def test_the_case_happens_as_the_page_says(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.check(row, tmp_path, monkeypatch)


def test_the_page_has_cases() -> None:
    assert len(ROWS) > 20
