"""Killed at every write and between write and deed: nothing is lost and nothing runs twice.

Every life is a process that SIGKILL ends in the middle of its work; the next one takes over.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import crashing
import pytest

PROGRAM = Path(__file__).parent / "killing.py"
some_or_all = pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.real)])


def killings(kind: str, folder: Path, *more: str) -> dict[str, int]:
    """What the program found; it fails where one life does."""
    with subprocess.Popen(
        [sys.executable, PROGRAM, kind, folder, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    ) as program:
        try:
            out, complaints = program.communicate(timeout=1200)
        finally:
            # Where one life fails, others still run.
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    assert program.returncode == 0, complaints
    found: dict[str, int] = json.loads(out)
    return found


def test_without_any_crash_the_life_has_everything_in_it(tmp_path: Path) -> None:
    assert crashing.live(tmp_path, None, 0) == 323


@some_or_all
def test_a_kill_at_any_of_323_points_loses_nothing_and_repeats_nothing(
    tmp_path: Path, every: int
) -> None:
    found = killings("fake", tmp_path, "--every", str(every))
    assert found["killed"] == found["points"] == len(range(0, 323, every))
    assert found["whole"] == 323


def test_kill_after_kill_gets_there_too(tmp_path: Path) -> None:
    found = killings("fake", tmp_path, "--chain", "--every", "20")
    assert found["killed"] > 10


@some_or_all
def test_among_tenants_too_and_while_others_come_to_own_what(tmp_path: Path, every: int) -> None:
    found = killings("tenants", tmp_path, "--every", str(every))
    assert found["killed"] == found["points"] == len(range(0, found["whole"], every))
    assert found["whole"] > 200


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.real)])
def test_real_processes_are_found_again_after_a_kill(tmp_path: Path, every: int) -> None:
    found = killings("local", tmp_path, "--every", str(every))
    # The busier the machine, the more is written at once: there are fewer points to die at, and
    # some lie beyond the end of a life that is shorter than the first one was.
    assert 20 // every < found["killed"] <= found["points"]
