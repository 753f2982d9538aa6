"""Commands that are really run: pinned, measured, ended, and what is said when they misbehave."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from hosting import PATIENCE, until

from dovetail.model.errors import UserError
from dovetail.profiler import running
from dovetail.profiler.measurement import Measurement
from dovetail.profiler.pinning import available_cores
from dovetail.profiler.running import Window, least_disturbed, measure
from dovetail.profiler.storage import memory_bandwidth, size_of, storage_bandwidth

SHORT = Window(seconds=0.6, warmup=0.1, patience=60.0)
#: a hundred steps a second by the clock, whatever else the machine does
LOOP = """\
import time, dovetail_client as d
begin = time.monotonic()
for _ in range(9999):
    time.sleep(0.01)
    d.progress(int(100 * (time.monotonic() - begin)), epoch=7)
"""


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and processor time are looked at often enough for a short window."""
    monkeypatch.setattr(running, "SAMPLE", 0.1)


@pytest.mark.usefixtures("often")
def test_a_command_s_speed_memory_and_cost_are_seen() -> None:
    seen = measure(python(LOOP), 1, SHORT)
    assert seen.speed == pytest.approx(100, rel=0.2)
    assert 0.001 < seen.memory < 1
    assert SHORT.seconds < seen.seconds < 60
    assert (seen.cores, seen.epoch) == (1, 7)


@pytest.mark.usefixtures("often")
def test_the_processor_time_that_a_command_takes_is_seen() -> None:
    window = Window(seconds=1.0, warmup=0.1)
    idle = measure(python(LOOP.replace("0.01", "0.05")), 1, window)
    busy = measure(python(LOOP.replace("time.sleep(0.01)", "sum(range(100_000))")), 1, window)
    # One that sleeps may be seen to take nothing: some machines count in ticks of 10 ms.
    assert 2 * idle.used < busy.used < 1.5


@pytest.mark.parametrize("cores", range(1, len(available_cores()) + 1))
def test_a_command_is_pinned_with_its_threads_and_told_how_many(cores: int, tmp_path: Path) -> None:
    note = tmp_path / "note"
    told = (
        "import os, sys; open(sys.argv[2], 'w').write(' '.join([sys.argv[1], "
        "os.environ['OMP_NUM_THREADS'], os.environ['DOVETAIL_CORES'], "
        "str(len(os.sched_getaffinity(0)))]))\n"
    )
    before = os.sched_getaffinity(0)
    measure([*python(told + LOOP), "{cores}", str(note)], cores, SHORT)
    assert note.read_text().split() == [str(cores)] * 4
    assert os.sched_getaffinity(0) == before


def test_all_that_was_started_is_ended_even_what_ignores_the_request_and_left_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.profiler.pinning.GRACE", 0.2)
    note = tmp_path / "note"
    script = (
        "import os, signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "inside = subprocess.Popen(['sleep', '60'])\n"
        "outside = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"open({str(note)!r}, 'w').write(f'{{os.getpid()}} {{inside.pid}} {{outside.pid}}')\n"
    )
    measure(python(script + LOOP), 1, SHORT)
    started = [int(pid) for pid in note.read_text().split()]
    assert len(started) == 3
    until(lambda: not any(map(alive, started)), "the end of all")


def alive(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_command_that_comes_to_its_end_is_measured_up_to_there() -> None:
    script = LOOP.replace("9999", "60")
    assert measure(python(script), 1, Window(1.0, 0.1)).speed == pytest.approx(100, rel=0.2)


MISTAKES: list[tuple[Sequence[str], str]] = [
    ([], "no command to profile"),
    (["no-such-program"], "no-such-program: there is no such command"),
    (["/etc/passwd"], "/etc/passwd: cannot be run (Permission denied)"),
    (python("print('no'); raise SystemExit('out of cheese')"), "ended with code 1 (out of cheese)"),
    (python("import os; os.kill(os.getpid(), 9)"), "was ended by signal 9"),
    (python("pass"), "ended without reporting any progress through dovetail_client"),
    (python("import dovetail_client as d; d.progress(1)"), "ended before its speed was known"),
    (
        python(
            "import time, dovetail_client as d; d.attach()\n"
            "while True: d.progress(1); time.sleep(.05)"
        ),
        "made no step in 0.3 s",
    ),
]


@pytest.mark.parametrize(("command", "words"), MISTAKES, ids=[row[1] for row in MISTAKES])
def test_a_command_that_cannot_be_measured_is_one_sentence(
    command: Sequence[str], words: str
) -> None:
    assert words in complaint(command, patience=60.0)


def complaint(command: Sequence[str], patience: float) -> str:
    with pytest.raises(UserError) as caught:
        measure(command, 1, Window(0.3, 0.0, patience))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_silent_command_is_given_up() -> None:
    script = "import time; time.sleep(600)"
    assert "its loop must call dovetail_client" in complaint(python(script), patience=0.3)


def test_a_command_that_falls_silent_is_given_up() -> None:
    script = "import time, dovetail_client as d; d.progress(1); time.sleep(600)"
    # Until Python has had the time to start, on this machine.
    said, patience = "", 1.0
    while "no further progress" not in said and patience < PATIENCE:
        patience *= 2
        said = complaint(python(script), patience)
    assert f"reported no further progress for {patience:g} s" in said


@pytest.mark.parametrize("cores", [0, -1, 10_000])
def test_cores_that_are_not_there_are_refused(cores: int) -> None:
    with pytest.raises(UserError, match="cores asked for"):
        measure(python(LOOP), cores, SHORT)


@pytest.mark.parametrize(("seconds", "warmup"), [(0, 1), (-1, 1), (float("inf"), 1), (1, -1)])
def test_a_window_that_makes_no_sense_is_refused(seconds: float, warmup: float) -> None:
    with pytest.raises(UserError):
        Window(seconds, warmup)


def test_a_disturbed_measurement_is_repeated_and_the_calmest_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = iter([0.5, 0.2, 0.3, 0.0])
    monkeypatch.setattr(
        running, "measure", lambda *_: Measurement(1, 1.0, seconds=2.0, others=next(tries))
    )
    seen = least_disturbed(["x"], 1, SHORT)
    assert (seen.others, seen.seconds) == (0.2, 6.0)
    assert least_disturbed(["x"], 1, SHORT).seconds == 2.0


# ---- reading ---------------------------------------------------------------------------------


def test_storage_is_measured_on_a_file_and_on_a_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(os.urandom(3 << 20))
    assert 1e6 < storage_bandwidth(tmp_path / "a") < 1e12
    assert 1e6 < storage_bandwidth(tmp_path) < 1e12
    assert size_of(tmp_path) == 6 << 20


def test_measuring_storage_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(64 << 20))
    begin = time.monotonic()
    assert storage_bandwidth(tmp_path, most=8 << 20) > 0
    assert storage_bandwidth(tmp_path, seconds=0.01) > 0
    assert time.monotonic() - begin < 30


def test_too_little_data_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    with pytest.raises(UserError, match="too little data"):
        storage_bandwidth(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        storage_bandwidth(tmp_path / "gone")


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_is_faster_than_any_disk(threads: int) -> None:
    # Others may have the cores during one try.
    assert any(memory_bandwidth(threads, seconds=0.05, size=4 << 20) > 1e8 for _ in range(20))
