"""Every program in `examples/` prints what is committed beside it."""

import subprocess
import sys
from pathlib import Path

import pytest
from doc_support import ROOT

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples_and_nothing_else() -> None:
    assert len(PROGRAMS) >= 3
    outputs = {path.stem for path in (ROOT / "examples").glob("*.out")}
    assert outputs == {path.stem for path in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_what_is_beside_it(program: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == program.with_suffix(".out").read_text()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_short(program: Path) -> None:
    code = [line for line in program.read_text().splitlines() if line.strip()]
    assert len(code) <= 25
