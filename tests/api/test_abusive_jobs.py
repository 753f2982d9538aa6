"""Jobs that misbehave: each ends in the right state with a reason, and its devices come back."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest
from hosting import PATIENCE, PYTHON, Hosted, until

from dovetail.live import Box
from dovetail.model.live import Description

MIB = 2**20


def freed(box: Box) -> None:
    """All devices are free again, and nobody is on the machine."""
    [node] = box.nodes()
    assert (node.free, node.jobs) == (node.gpus, ())


def ended(box: Box, *words: str, **fields: object) -> Description:
    job = box.wait(box.submit(words, **{"gpus": 1, **fields}), seconds=PATIENCE)
    assert job.state in ("done", "failed", "cancelled"), job
    freed(box)
    return job


def running(box: Box, *words: str, **fields: object) -> int:
    """A job that has said something."""
    number = box.submit(words, gpus=1, **fields)
    until(lambda: box.log(number).text, "the log")
    return number


def alive(mark: str) -> list[int]:
    """Processes that carry a mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARK") == mark and process.status() != "zombie":
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_children_that_run_away_are_caught(box: Box, tmp_path: Path) -> None:
    mark = str(tmp_path)
    script = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        os._exit(0)
print("gone", flush=True)
"""
    job = ended(box, PYTHON, "-c", script, environment={"MARK": mark})
    assert job.state == "done"
    assert alive(mark) == []


def test_a_job_that_ignores_every_signal_is_ended_after_its_grace(box: Box, tmp_path: Path) -> None:
    mark = str(tmp_path)
    script = (
        "trap '' TERM INT HUP; (trap '' TERM; setsid sleep 600 &) ; echo on; sleep 600; sleep 600"
    )
    number = running(box, "sh", "-c", script, grace=0.5, environment={"MARK": mark})
    begun = time.monotonic()
    box.cancel(number)
    assert box.wait(number).state == "cancelled"
    assert time.monotonic() - begun > 0.4
    freed(box)
    assert alive(mark) == []


def test_a_bomb_of_forks_is_ended_as_a_whole(box: Box, tmp_path: Path) -> None:
    mark = str(tmp_path)
    script = """
import os, time
print("on", flush=True)
for _ in range(6):
    os.fork()
time.sleep(600)
"""
    number = running(box, PYTHON, "-c", script, grace=0.2, environment={"MARK": mark})
    until(lambda: len(alive(mark)) == 64, "64 processes")
    box.cancel(number)
    assert box.wait(number).state == "cancelled"
    freed(box)
    assert alive(mark) == []


def test_a_log_without_end_takes_bounded_room(host: Hosted, box: Box) -> None:
    number = running(box, "sh", "-c", "yes 0123456789012345678901234567890123456789", grace=0.2)
    folder = host.folder / "attempts" / f"{number}-1"
    until(lambda: len(list(folder.glob("log.*"))) >= 2, "rotation")
    followed, cursor = 0, ""
    while followed <= 4 * MIB:
        piece = until(lambda at=cursor: (found := box.log(number, cursor=at)).text and found)
        followed, cursor = followed + len(piece.text), piece.cursor
    assert box.log(number, tail=2).text.startswith("0123456789")
    box.cancel(number)
    box.wait(number)
    sizes = [path.stat().st_size for path in folder.glob("log*")]
    launched = sum(sizes)
    assert launched <= 5 * max(sizes)
    assert len(sizes) <= 5
    freed(box)


def test_followers_miss_nothing_when_files_are_rotated(box: Box) -> None:
    lines = 400_000
    number = box.submit(["seq", "-f", "line %020.0f of a rather long log for one job", str(lines)])
    text = "".join(box.follow(number, pace=0.01))
    found = text.splitlines()
    assert found[0].endswith("long log for one job")
    assert int(found[-1].split()[1]) == lines
    numbers = [int(line.split()[1]) for line in found]
    assert numbers == list(range(numbers[0], lines + 1)), "in order, without a gap"


def test_eating_memory_is_named(box: Box) -> None:
    # Four times what it may have, and no more: where memory is only watched it gets that far.
    script = "import time\nx = [bytearray(8 << 20) for _ in range(100)]\ntime.sleep(600)"
    job = ended(box, PYTHON, "-c", script, memory="200M")
    assert job.state == "failed"
    assert "memory" in job.reason


def test_a_job_that_closes_everything_ends_as_any_other(box: Box) -> None:
    script = "import os, time\nos.closerange(0, 100)\ntime.sleep(0.3)\nos._exit(4)"
    job = ended(box, PYTHON, "-c", script)
    assert (job.state, job.code) == ("failed", 4)


def test_huge_arguments_and_environments_are_refused_by_name(box: Box) -> None:
    most = 128 * 1024 - 1
    # What the kernel takes in all depends on its limit for stacks.
    many = ["x" * most] * 60
    job = ended(box, "true", *many)
    assert (job.state, job.code) == ("failed", None)
    assert "Argument list too long" in job.reason
    environment = {f"V{number}": "x" * (most - 10) for number in range(60)}
    job = ended(box, "true", environment=environment)
    assert "Argument list too long" in job.reason


@pytest.mark.parametrize(
    ("words", "fields", "reason"),
    [
        (["no-such-command"], {}, "no-such-command: there is no such command"),
        (["/etc/passwd"], {}, "/etc/passwd: Permission denied"),
        (["true"], {"directory": "/no/such/folder"}, "/no/such/folder: there is no such folder"),
        (["true"], {"directory": "/etc/passwd"}, "/etc/passwd: Not a directory"),
        ([""], {}, "there is no command"),
    ],
)
def test_what_cannot_be_started_says_why(
    box: Box, words: list[str], fields: dict[str, str], reason: str
) -> None:
    job = ended(box, *words, **fields)
    assert (job.state, job.reason) == ("failed", f"could not start: {reason}")


def test_no_shell_is_involved_unless_the_user_wrote_one(box: Box, tmp_path: Path) -> None:
    words = ["echo", "$HOME", "`id`", "$(id)", "; touch", str(tmp_path / "x"), "*", "a b"]
    number = box.submit(words)
    box.wait(number)
    assert box.log(number).text == f"{' '.join(words[1:])}\n"
    assert not (tmp_path / "x").exists()


def test_a_time_limit_is_kept(box: Box) -> None:
    job = ended(box, "sh", "-c", "trap '' TERM; sleep 600", time_limit=0.5, grace=0.2)
    assert (job.state, job.reason) == ("failed", "its time limit of 0.5 s is over")


def test_lies_about_progress_harm_nobody(box: Box) -> None:
    script = (
        "printf 'nonsense\\n{}\\n[1]\\n%0100000d\\n' 0 > $DOVETAIL_PROGRESS;"
        "rm -f $DOVETAIL_CHECKPOINT; mkdir $DOVETAIL_CHECKPOINT; echo on; sleep 0.5;"
        "rm $DOVETAIL_PROGRESS; mkfifo $DOVETAIL_PROGRESS; sleep 0.5"
    )
    job = ended(box, "sh", "-c", script)
    assert job.state == "done"
    assert box.about().jobs == 0


def test_a_job_cannot_reach_what_belongs_to_the_controller(host: Hosted, box: Box) -> None:
    number = box.submit(["sh", "-c", "ls $(dirname $DOVETAIL_PROGRESS)/.. ; env"])
    box.wait(number)
    said = box.log(number).text
    assert "DOVETAIL_TOKEN" not in said
    assert os.path.isdir(host.folder)
