"""Speeds from what a job reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dovetail.profiler.progress import ProgressFile, Report, after, speed


def line(at: float, steps: int, process: int = 1, **more: object) -> str:
    return json.dumps({"at": at, "process": process, "steps": steps, **more}) + "\n"


def test_reports_are_read_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    file = ProgressFile(path)
    assert file.read() == []
    path.write_text(line(1, 10))
    assert file.read() == [Report(1, 10)]
    with path.open("a") as more:
        more.write(line(2, 20, epoch=5) + line(3, 30)[:7])
    assert file.read() == [Report(2, 20, 5)]
    with path.open("a") as more:
        more.write(line(3, 30)[7:])
    assert file.read() == [Report(3, 30)]


def test_the_process_that_spoke_first_is_listened_to(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_text(line(1, 1, process=7) + line(1, 1, process=8) + line(2, 2, process=7))
    assert [report.steps for report in ProgressFile(path).read()] == [1, 2]


@pytest.mark.parametrize("bad", ["", "{", "[]", "3", '{"at": 1}', '{"at": "x", "steps": 1}'])
def test_lines_that_say_nothing_are_passed_over(bad: str, tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_text(bad + "\n" + line(1, 1))
    assert ProgressFile(path).read() == [Report(1, 1)]


def test_the_warm_up_begins_with_the_first_step() -> None:
    reports = [Report(0, 0), Report(10, 1), Report(11, 2), Report(12, 3), Report(13, 4)]
    assert after(reports, 2.0) == reports[3:]
    assert after(reports[:1], 0.0) == []


def test_a_steady_job_has_no_noise() -> None:
    assert speed([Report(t / 10, t) for t in range(101)]) == pytest.approx((10.0, 0.0))


def test_a_job_that_falters_has_some() -> None:
    steps = [0, 10, 30, 40, 60, 70]
    per_second, noise = speed([Report(t, s) for t, s in enumerate(steps)])
    assert per_second == 14.0
    assert noise == pytest.approx(0.175, abs=0.01)
