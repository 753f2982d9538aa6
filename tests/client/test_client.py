"""What a training script says through the client, and that it never suffers from saying it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dovetail_client
from dovetail_client.reporter import EVERY, Reporter


class Clock:
    """Time that passes when told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(autouse=True)
def ends_when_told() -> Iterator[None]:
    """Who asks whether to checkpoint is not ended by a signal any more; tests are."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "progress"


@pytest.fixture
def reporter(clock: Clock, file: Path) -> Reporter:
    environment = {
        "DOVETAIL_PROGRESS": str(file),
        "DOVETAIL_CHECKPOINT": str(file.parent / "checkpoint"),
    }
    return Reporter(environment, clock)


@pytest.fixture
def client(reporter: Reporter, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(dovetail_client, "_reporter", reporter)
    return dovetail_client


def test_the_first_report_is_written_at_once(reporter: Reporter, file: Path) -> None:
    reporter.progress(3, total=10, epoch=5)
    assert lines(file) == [
        {"at": 100.0, "process": os.getpid(), "steps": 3, "total": 10, "epoch": 5}
    ]


def test_reports_that_come_too_soon_are_held_back(
    reporter: Reporter, clock: Clock, file: Path
) -> None:
    for step in range(1, 101):
        clock.now += EVERY / 10
        reporter.progress(step)
    assert len(lines(file)) == pytest.approx(10, abs=1)
    reporter.flush()
    assert lines(file)[-1]["steps"] == 100


def test_the_last_step_is_never_held_back(reporter: Reporter, file: Path) -> None:
    reporter.progress(9, total=10)
    reporter.progress(10, total=10)
    assert [line["steps"] for line in lines(file)] == [9, 10]


def test_a_pass_over_the_data_reports_each_step_and_its_length(client: Any, file: Path) -> None:
    assert list(client.steps(["a", "b", "c"], total=6)) == ["a", "b", "c"]
    assert list(client.steps(["a", "b", "c"], total=6)) == ["a", "b", "c"]
    last = lines(file)[-1]
    assert (last["steps"], last["epoch"], last["total"]) == (6, 3, 6)


def test_a_stream_has_no_length(client: Any, file: Path) -> None:
    assert list(client.steps(iter("ab"))) == ["a", "b"]
    assert "epoch" not in lines(file)[-1]


def test_a_step_counts_when_it_has_been_dealt_with(client: Any, file: Path) -> None:
    loop: Iterator[str] = client.steps("abc")
    next(loop)
    assert lines(file) == []
    next(loop)
    assert lines(file)[-1]["steps"] == 1


def test_steps_go_on_from_a_restored_checkpoint(client: Any, file: Path) -> None:
    client.progress(5000)
    list(client.steps("abc"))
    assert lines(file)[-1]["steps"] == 5003


def test_attaching_reports_before_the_first_step(client: Any, file: Path) -> None:
    assert client.attach()
    assert lines(file)[-1]["steps"] == 0


def test_a_checkpoint_is_asked_for_by_a_file(client: Any, file: Path) -> None:
    assert not client.should_checkpoint()
    (file.parent / "checkpoint").touch()
    assert client.should_checkpoint()


ASKS = """
import dovetail_client as d, os, signal, time
while not d.should_checkpoint():
    print("asked", flush=True)
    time.sleep(0.01)
if (child := os.fork()) == 0:
    print(signal.getsignal(signal.SIGTERM).name, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("saved", flush=True)
d.checkpointed()
print("never said")
"""


def told_to_end(script: str, file: Path) -> tuple[int, list[str]]:
    """What becomes of a script that is told to end after its first word."""
    environment = {**os.environ, "DOVETAIL_CHECKPOINT": str(file.parent / "checkpoint")}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        rest = [line for line in process.stdout.read().split() if line != "asked"]
    return process.returncode, rest


def test_a_script_that_asks_is_told_to_end_and_ends_once_it_has_saved(file: Path) -> None:
    assert told_to_end(ASKS, file) == (-signal.SIGTERM, ["SIG_DFL", "saved"])


def test_a_script_that_does_not_ask_ends_when_told(file: Path) -> None:
    script = "import dovetail_client, time; print('there', flush=True); time.sleep(600)"
    assert told_to_end(script, file) == (-signal.SIGTERM, [])


def test_a_script_that_handles_the_signal_itself_goes_on_doing_so(file: Path) -> None:
    own = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"
    assert told_to_end(own + ASKS, file) == (7, [])


def test_nothing_happens_where_nobody_listens(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dovetail_client, "_reporter", Reporter({}, clock))
    assert not dovetail_client.attach()
    dovetail_client.progress(1)
    assert list(dovetail_client.steps("ab")) == ["a", "b"]
    assert not dovetail_client.should_checkpoint()


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/proc/progress", "/dev/full", "/"])
def test_a_file_that_cannot_be_written_is_no_reason_to_end(path: str, clock: Clock) -> None:
    reporter = Reporter({"DOVETAIL_PROGRESS": path}, clock)
    reporter.attach()
    for step in range(3):
        clock.now += 1
        reporter.progress(step)


def test_processes_that_share_a_file_do_not_overwrite_each_other(file: Path) -> None:
    script = (
        "import dovetail_client as d\nfor n in range(1, 201): d._reporter._written=0; d.progress(n)"
    )
    environment = {**os.environ, "DOVETAIL_PROGRESS": str(file)}
    running = [subprocess.Popen([sys.executable, "-c", script], env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(lines(file)) == 600


def test_a_script_that_ends_reports_its_last_step_and_a_forked_child_does_not(file: Path) -> None:
    script = (
        "import dovetail_client as d, os, sys\n"
        "d.progress(1); d.progress(2)\n"
        "if (child := os.fork()) == 0: sys.exit()\n"
        "os.waitpid(child, 0)"
    )
    environment = {**os.environ, "DOVETAIL_PROGRESS": str(file)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    assert [line["steps"] for line in lines(file)] == [1, 2]


def test_the_client_needs_the_standard_library_only() -> None:
    script = (
        "import dovetail_client, sys\n"
        "print([name for name in sys.modules if name.startswith(('dovetail.', 'numpy'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_checkpoint_is_told_at_once_with_what_was_held_back(
    client: Any, clock: Clock, file: Path
) -> None:
    client.progress(3, total=10)
    clock.now += EVERY / 2
    client.progress(4, total=10)
    client.checkpointed()
    assert lines(file)[1:] == [
        {"at": clock.now, "process": os.getpid(), "steps": 4, "saved": True, "total": 10}
    ]


def test_without_anybody_listening_a_checkpoint_is_told_to_nobody(tmp_path: Path) -> None:
    Reporter({}).checkpointed()
    assert list(tmp_path.iterdir()) == []
