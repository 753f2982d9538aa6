"""The controller dies, the machine may too: what a new controller finds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from executor_contract import PATIENCE, Does, Paused, Running, until
from local_rig import LocalRig

from dovetail.executors.local import shim
from dovetail.executors.local.processes import runs
from dovetail.executors.protocol import Attempt, Ended

FIRST = Attempt(1, 1)
CONTROLLER = """
import sys, time
from pathlib import Path
from dovetail.executors.local import Local, detect
from dovetail.executors.protocol import Attempt, Launch, Running
from dovetail.model.allocation import Part, allocation_of
executor = Local(Path(sys.argv[1]), detect(virtual=2))
held = allocation_of((Part(0, 1, 1000, 256),))
executor.start(Launch(Attempt(1, 1), "x", ("sh", "-c", sys.argv[2]), held, Path("/")))
while not any(isinstance(each, Running) for each in executor.reports()):
    time.sleep(0.01)
print("running", flush=True)
time.sleep(600)
"""


def state(rig: LocalRig) -> dict[str, object]:
    found: dict[str, object] = json.loads((rig.folder() / "state.json").read_text())
    return found


def killed_controller(rig: LocalRig, words: str) -> None:
    """Start a job from a process of its own, and kill that process."""
    command = [sys.executable, "-c", CONTROLLER, str(rig.data), words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"running\n"
        controller.kill()


@contextmanager
def standing_still(rig: LocalRig) -> Iterator[None]:
    """While the shim of the first attempt does nothing."""
    shim = rig.executor._runs[FIRST]._shim.pid
    os.kill(shim, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(shim, signal.SIGCONT)


def test_a_job_outlives_a_controller_that_is_killed(local: LocalRig) -> None:
    killed_controller(local, "echo $$; sleep 600")
    launch = local.command("sh")
    assert local.executor.adopt(launch)
    assert until(local, Running) == [Running(FIRST, launch.allocation)]
    local.said("\n")
    assert runs(int(local.log()))
    local.executor.stop(FIRST, PATIENCE)
    assert local.ended() == Ended(FIRST, None, signal.SIGTERM)


def test_the_end_of_a_job_is_known_though_nobody_was_there(local: LocalRig) -> None:
    go = local.directory / "go"
    killed_controller(local, f"until [ -e '{go}' ]; do sleep 0.02; done; exit 9")
    go.touch()
    local.true(lambda: state(local)["phase"] == "ended")
    assert local.executor.adopt(local.command("sh"))
    assert local.ended() == Ended(FIRST, 9)


def test_a_job_is_never_started_twice(local: LocalRig) -> None:
    launch = local.running("sh", "-c", "echo once; sleep 600")
    local.reopen()
    local.executor.start(launch)
    assert until(local, Running) == [Running(FIRST, launch.allocation)]
    local.said("once")
    local.wait(0.2)
    assert local.log() == "once\n"


def test_a_job_that_vanished_is_lost_and_nothing_of_it_is_left(fenced: LocalRig) -> None:
    launch = fenced.running("sh", "-c", "sleep 600 & echo $!; sleep 600")
    fenced.said("\n")
    os.kill(int(str(state(fenced)["pid"])), signal.SIGKILL)
    fenced.reopen()
    assert fenced.executor.adopt(launch)
    ended = fenced.ended()
    assert (ended.code, ended.signal) == (None, None)
    assert ended.reason.startswith("lost: ")
    assert not runs(int(fenced.log()))


def test_after_a_reboot_a_job_is_lost_though_its_numbers_are_given_out_again(
    local: LocalRig,
) -> None:
    launch = local.command("true")
    folder = local.folder()
    folder.mkdir(parents=True)
    me = {"pid": os.getpid(), "started": 1, "boot": "another"}
    (folder / "claim").write_text(json.dumps(me))
    past = {**me, "phase": "running", "group": os.getpid(), "group_started": 1}
    (folder / "state.json").write_text(json.dumps(past))
    assert local.executor.adopt(launch)
    local.executor.stop(FIRST, 0.0)
    assert local.ended().reason.startswith("lost: ")


def test_a_start_that_was_cut_short_is_made_again_and_the_first_cannot_begin_later(
    local: LocalRig,
) -> None:
    launch = local.command("sh", "-c", "echo once")
    local.folder().mkdir(parents=True)
    (local.folder() / "launch.json").write_text("{")
    assert not local.executor.adopt(launch)
    local.executor.start(launch)
    late = [sys.executable, "-I", "-S", str(shim.__file__), str(local.folder()), "claim"]
    assert subprocess.run(late, check=False).returncode == 0
    assert local.ended() == Ended(FIRST, 0)
    assert local.log() == "once\n"
    # What ran is found, however many starts were cut short before it.
    local.reopen()
    assert local.executor.adopt(launch)
    assert local.ended() == Ended(FIRST, 0)


def test_what_a_start_that_was_cut_short_left_behind_is_not_taken_from_the_next(
    fenced: LocalRig,
) -> None:
    launch = fenced.command("sleep", "600")
    fenced.folder().mkdir(parents=True)
    assert not fenced.executor.adopt(launch)
    fenced.executor.start(launch)
    # However long the shim takes to begin: its fence stays.
    with standing_still(fenced):
        assert fenced.executor.reports() == []
    until(fenced, Running)
    fenced.executor.stop(FIRST, PATIENCE)
    assert fenced.ended() == Ended(FIRST, None, signal.SIGTERM)


def test_a_start_that_was_cut_short_may_be_given_up(fenced: LocalRig) -> None:
    launch = fenced.command("true")
    fenced.folder().mkdir(parents=True)
    for _ in range(3):
        assert not fenced.executor.adopt(launch)
    late = [sys.executable, "-I", "-S", str(shim.__file__), str(fenced.folder()), "claim-2"]
    assert subprocess.run(late, check=False).returncode == 0
    assert not (fenced.folder() / "state.json").exists()
    assert fenced.executor.reports() == []


def test_a_shim_that_is_slow_to_begin_is_not_lost_with_its_controller(local: LocalRig) -> None:
    launch = local.command("sh", "-c", "echo once")
    local.executor.start(launch)
    # As after a kill: who comes next may be there before the shim, or after it.
    local.reopen()
    local.executor.start(launch)
    assert local.ended() == Ended(FIRST, 0)
    assert local.log() == "once\n"


def test_a_suspended_job_is_found_suspended(fenced: LocalRig) -> None:
    launch = fenced.running("sleep", "600")
    fenced.executor.suspend(FIRST)
    until(fenced, Paused)
    fenced.reopen()
    assert fenced.executor.adopt(launch)
    assert until(fenced, Paused) == [Running(FIRST, launch.allocation), Paused(FIRST)]
    fenced.executor.resume(FIRST)
    until(fenced, Running)
    fenced.executor.stop(FIRST, PATIENCE)
    assert fenced.ended().signal == signal.SIGTERM


def test_the_next_attempt_is_another(local: LocalRig) -> None:
    local.executor.start(local.launch(FIRST, Does.WAITS))
    local.executor.stop(FIRST, 0.0)
    assert local.ended().attempt == FIRST
    assert local.run("true", attempt=Attempt(1, 2)) == Ended(Attempt(1, 2), 0)


def test_what_the_shim_needs_is_in_the_standard_library() -> None:
    text = Path(str(shim.__file__)).read_text()
    names = [line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))]
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
