"""Advice from a history: what was, beside what would have been."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.simulator.advice import advise

HEADER = "JobIDRaw|User|Account|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocTRES"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A long job on all GPUs, a short one behind it that waited, and one that never ran."""
    rows = [
        "1|a|red|COMPLETED|2026-10-01T00:00:00|2026-10-01T00:00:00|3600|60|cpu=4,gres/gpu=4,mem=4G",
        "2|b|blue|COMPLETED|2026-10-01T00:01:00|2026-10-01T01:00:00|60|1|cpu=8,gres/gpu=4,mem=4G",
        "3|b|blue|CANCELLED by 7|2026-10-01T00:01:00|None|0|1|",
    ]
    path = tmp_path / "history.txt"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def test_what_was_is_told_as_it_was(history: Path) -> None:
    was = advise(str(history), "1x4,cpus=8,mem=16", ["fifo"])[0]
    assert (was.name, was.jobs, was.mean_wait) == ("as it was", 2, 3540 / 2)
    assert was.mean_completion == (3600 + 3600) / 2
    assert was.gpu_use == 1.0
    assert was.stranded_cpu == pytest.approx(1 - (4 * 3600 + 8 * 60) / (8 * 3660))


def test_a_policy_would_have_changed_it(history: Path) -> None:
    was, fifo, srtf = advise(str(history), "1x4,cpus=8,mem=16", ["fifo", "srtf"], restart_cost=0.0)
    assert fifo[1:] == pytest.approx(was[1:])
    assert srtf.mean_wait < fifo.mean_wait


def test_the_command_prints_a_line_for_each(history: Path, dovetail: Callable[..., Any]) -> None:
    answer = dovetail("advise", history, "--cluster", "1x4,cpus=8,mem=16", "--policies", "fifo")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0].strip().startswith("jobs  mean wait  p95 wait  mean JCT  GPU use")
    assert [line.split("  ")[0] for line in lines[1:3]] == ["as it was", "fifo"]


def test_a_file_that_is_no_history_is_refused(tmp_path: Path, dovetail: Callable[..., Any]) -> None:
    path = tmp_path / "other.txt"
    path.write_text("job_id,submit_time,gpus,duration\na,0,1,10\n")
    answer = dovetail("advise", path, "--cluster", "1x4")
    assert answer.code == 2
    assert "there is no column 'JobIDRaw'" in answer.err
