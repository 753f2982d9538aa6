"""What becomes of a command: how it is started, what it finds, how it ends."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from executor_contract import Does, small, steps, until
from hosting import told_by
from hosting import until as awaited
from local_rig import COUNT, INSIST, PYTHON, LocalRig, local_rig

from dovetail.executors.local.folders import folder_of
from dovetail.executors.local.processes import alive, identify, runs
from dovetail.executors.local.progress import CHUNK, Listener
from dovetail.executors.protocol import Advanced, Attempt, Ended, Saved

FIRST = Attempt(1, 1)
ROOT = os.geteuid() == 0
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
NOBODY = (65534, 65534)


def test_a_signal_that_ended_a_command_is_told(local: LocalRig) -> None:
    assert local.run("sh", "-c", "kill -SEGV $$") == Ended(FIRST, None, signal.SIGSEGV)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("no-such-thing",), "no-such-thing: there is no such command"),
        (("/dev/null",), "/dev/null: Permission denied"),
        (("",), "there is no command"),
        ((), "there is no command"),
    ],
)
def test_a_command_that_cannot_be_executed_is_reported_in_words(
    local: LocalRig, words: tuple[str, ...], complaint: str
) -> None:
    ended = local.run(*words)
    assert (ended.code, ended.signal) == (None, None)
    assert ended.reason.startswith("could not start: ") and complaint in ended.reason


def test_a_folder_that_is_not_there_is_reported_in_words(local: LocalRig) -> None:
    local.directory = local.directory / "absent"
    assert local.run("true").reason.endswith("absent: there is no such folder")


def test_output_and_complaints_are_in_the_log_and_there_is_no_input(local: LocalRig) -> None:
    local.run("sh", "-c", "echo one; echo two >&2; cat; pwd")
    assert local.log() == f"one\ntwo\n{local.directory}\n"


def test_a_log_is_rotated_by_size_and_the_oldest_output_dropped(local: LocalRig) -> None:
    text = "for i in range(100): print(f'{i:099}')"
    local.run(PYTHON, "-c", text, log_bytes=2500, log_files=3)
    files = [local.folder() / name for name in ("log.2", "log.1", "log")]
    assert [file.stat().st_size for file in files] == [2500, 2500, 2500]
    assert "".join(file.read_text() for file in files) == "".join(
        f"{i:099}\n" for i in range(25, 100)
    )
    assert not (local.folder() / "log.3").exists()


def test_the_job_finds_its_devices_threads_and_files(
    local: LocalRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_TOKEN", "secret")
    local.run(
        *(PYTHON, "-c", SHOW),
        attempt=Attempt(7, 3),
        allocation=small(cpu=1500, devices=0b10),
        environment={"PYTHONPATH": "/theirs", "MKL_NUM_THREADS": "9"},
    )
    seen = json.loads(local.log(Attempt(7, 3)))
    assert (seen["DOVETAIL_JOB"], seen["DOVETAIL_ATTEMPT"]) == ("7", "3")
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["DOVETAIL_VIRTUAL_GPUS"]) == ("", "1")
    assert (seen["OMP_NUM_THREADS"], seen["MKL_NUM_THREADS"]) == ("1", "9")
    assert seen["PYTHONPATH"].startswith("/theirs:")
    assert Path(seen["DOVETAIL_PROGRESS"]).is_relative_to(local.folder(Attempt(7, 3)))
    assert "DOVETAIL_TOKEN" not in seen


def test_threads_are_not_named_where_cores_are_not_limited(local: LocalRig) -> None:
    local.run(PYTHON, "-c", SHOW, allocation=small(cpu=0))
    assert "OMP_NUM_THREADS" not in json.loads(local.log())


def test_paths_are_made_of_numbers_in_the_data_folder(local: LocalRig) -> None:
    local.run("true")
    assert local.folder() == local.data / "attempts" / "1-1"
    assert local.folder().stat().st_mode & 0o777 == 0o700


def test_a_job_keeps_a_folder_from_one_attempt_to_the_next(local: LocalRig) -> None:
    words = ("sh", "-c", 'cat "$DOVETAIL_JOB_DIR/kept"; echo 17 > "$DOVETAIL_JOB_DIR/kept"')
    for attempt in (FIRST, Attempt(1, 2), Attempt(2, 1)):
        local.run(*words, attempt=attempt)
    assert local.log(Attempt(1, 2)) == "17\n"
    assert "No such file" in local.log(FIRST) and "No such file" in local.log(Attempt(2, 1))
    local.executor.forget([FIRST, Attempt(1, 2)])
    assert [path.name for path in (local.data / "jobs").iterdir()] == ["2"]


def test_what_is_not_there_cannot_be_started_on(local: LocalRig) -> None:
    assert "2 GPUs" in local.run("true", allocation=small(devices=0b100)).reason


@contextmanager
def out_of_files() -> Iterator[None]:
    """While no more files can be opened."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_job_that_cannot_be_looked_at_is_not_lost(local: LocalRig) -> None:
    local.running("sleep", "600")
    with out_of_files():
        reports = local.executor.reports()
    assert reports == []


def test_how_a_job_ended_is_read_when_files_can_be_opened_again(local: LocalRig) -> None:
    local.running("sh", "-c", told_by(local.directory / "on"))
    (local.directory / "on").touch()
    told = local.folder() / "state.json"
    awaited(lambda: '"ended"' in told.read_text())
    with out_of_files():
        reports = local.executor.reports()
    assert [*reports, local.ended()] == [Ended(FIRST, 0)]


# ---- ending ---------------------------------------------------------------------------------


def test_no_descendant_is_left_of_a_job_that_ignores_being_asked(fenced: LocalRig) -> None:
    # One child in the group, and one that left session, group and parents.
    fenced.running("sh", "-c", f"setsid sh -c 'sleep 600 & echo away; sleep 600' & {INSIST}")
    fenced.said("away")
    fenced.said("deaf")
    # The short sleeps among them come and go.
    processes = [found for pid in fenced.members() if (found := identify(pid))]
    assert len(processes) >= 4
    fenced.executor.stop(FIRST, 0.2)
    assert fenced.ended() == Ended(
        FIRST, None, signal.SIGKILL, "did not end within 0.2 s of being asked to"
    )
    assert not any(map(alive, processes))


def test_what_a_command_leaves_behind_ends_with_it(fenced: LocalRig) -> None:
    fenced.start("sh", "-c", "setsid sleep 600 & echo $!; exit 4")
    assert fenced.ended().code == 4
    assert not runs(int(fenced.log()))


def test_a_child_that_writes_without_end_does_not_hide_the_end(local: LocalRig) -> None:
    assert local.run("sh", "-c", "yes & sleep 0.2; exit 6", log_bytes=100_000).code == 6


def test_a_job_is_asked_for_a_checkpoint_and_ends_in_its_own_way(local: LocalRig) -> None:
    words = 'trap "ls $DOVETAIL_CHECKPOINT; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
    local.running("sh", "-c", words)
    local.said("ready")
    local.executor.stop(FIRST, 20.0)
    assert local.ended() == Ended(FIRST, 5)
    assert local.log().endswith("/job/checkpoint\n")


def test_calls_do_not_wait(local: LocalRig) -> None:
    before = time.monotonic()
    local.start("sh", "-c", INSIST)
    local.executor.stop(FIRST, 30.0)
    local.executor.reports()
    assert time.monotonic() - before < 15, "half of what it was given to end"


# ---- owners ---------------------------------------------------------------------------------


@pytest.fixture
def open_to_all() -> Iterator[LocalRig]:
    """In a folder that other users may enter, which those of the tests are not."""
    with TemporaryDirectory(prefix="dovetail-test-") as name:
        Path(name).chmod(0o755)
        with local_rig(Path(name), "best") as rig:
            yield rig


@pytest.mark.skipif(not ROOT, reason="only root can run jobs as others")
def test_a_job_runs_as_its_owner_and_may_write_where_it_reports(open_to_all: LocalRig) -> None:
    rig = open_to_all
    words = 'id -u; id -g; id -G; touch "$DOVETAIL_PROGRESS"; touch "${DOVETAIL_PROGRESS%/*/*}/x"'
    assert rig.run("sh", "-c", words, owner=NOBODY).code == 1
    assert rig.log().split()[:3] == ["65534", "65534", "65534"]
    assert "Permission denied" in rig.log()
    job, log = rig.folder() / "job", rig.folder() / "log"
    assert (job.stat().st_uid, job.stat().st_mode & 0o777) == (65534, 0o700)
    assert (job / "progress").stat().st_uid == log.stat().st_uid == 65534
    assert (rig.folder() / "launch.json").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_may_not_be_looked_into_has_no_command(open_to_all: LocalRig) -> None:
    closed = open_to_all.directory / "closed"
    closed.mkdir(0o000)
    path = {"PATH": f"{closed}:/usr/bin:/bin"}
    ended = open_to_all.run("no-such-thing", environment=path, owner=NOBODY if ROOT else None)
    assert ended.reason == "could not start: no-such-thing: there is no such command"


@pytest.mark.skipif(not ROOT, reason="only root can run jobs as others")
def test_what_was_made_in_part_becomes_its_owners(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, FIRST)
    folder.job.mkdir(parents=True)
    (folder.path / "log").touch()
    folder.make(NOBODY)
    folder.make_log(NOBODY)
    made = (folder.job, folder.kept, folder.path / "log")
    assert [path.stat().st_uid for path in made] == [65534] * 3


@pytest.mark.skipif(not ROOT, reason="only root can run jobs as others")
def test_the_folder_a_job_keeps_is_its_owners(open_to_all: LocalRig) -> None:
    for attempt in (FIRST, Attempt(1, 2)):
        ended = open_to_all.run(
            "sh", "-c", 'echo x >> "$DOVETAIL_JOB_DIR/kept"', owner=NOBODY, attempt=attempt
        )
        assert ended.code == 0
    kept = open_to_all.data / "jobs" / "1"
    assert (kept.stat().st_uid, kept.stat().st_mode & 0o777) == (65534, 0o700)
    assert (kept / "kept").read_text() == "x\nx\n"


@pytest.mark.skipif(not ROOT, reason="only root can run jobs as others")
def test_a_job_of_another_owner_can_be_stopped_and_reports(open_to_all: LocalRig) -> None:
    open_to_all.running("/usr/bin/env", "python3", "-c", COUNT, owner=NOBODY)
    until(open_to_all, Advanced)
    open_to_all.executor.stop(FIRST, 10.0)
    assert open_to_all.ended().signal == signal.SIGTERM


@pytest.mark.skipif(not ROOT, reason="only root can run jobs as others")
def test_an_owner_who_cannot_reach_the_folder_is_told(local: LocalRig) -> None:
    local.data.chmod(0o700)
    assert "its owner cannot reach this folder" in local.run("true", owner=NOBODY).reason


# ---- progress -------------------------------------------------------------------------------


def test_progress_through_the_client_arrives(local: LocalRig) -> None:
    local.running(PYTHON, "-c", COUNT)
    told = [each for each in until(local, Advanced) if isinstance(each, Advanced)]
    assert told[0].attempt == FIRST and told[0].total == 1000
    assert steps(told) >= 1
    local.executor.stop(FIRST, 5.0)
    local.ended()


def line(at: float, steps: float, process: int = 1) -> str:
    return json.dumps({"at": at, "steps": steps, "process": process, "total": 100}) + "\n"


def test_the_rate_is_that_of_late(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    file.write_text(line(0, 0) + line(100, 10) + line(110, 30) + line(110, 999, process=2))
    news = Listener(file).news()
    assert news is not None and tuple(news) == (30, 100, 2.0)


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    file, whole = tmp_path / "progress", line(1, 2)
    listener = Listener(file)
    assert listener.news() is None
    file.write_text(whole[:9])
    assert listener.news() is None
    file.write_text(whole)
    assert listener.news() is not None
    assert listener.news() is None


def test_nothing_a_job_puts_in_place_of_its_progress_holds_us_up(tmp_path: Path) -> None:
    file, secret = tmp_path / "progress", tmp_path / "secret"
    secret.write_text(line(1, 2))
    os.mkfifo(file)
    assert Listener(file).news() is None
    file.unlink()
    file.symlink_to(secret)
    assert Listener(file).news() is None
    file.unlink()
    file.write_text("x" * CHUNK + '[1]\n"no"\n{"at": NaN, "steps": 1, "process": 1}\n' + line(1, 7))
    listener = Listener(file)
    assert [listener.news() is None for _ in range(3)] == [True, False, True]


def test_all_kinds_of_jobs_leave_nothing_behind(local: LocalRig) -> None:
    # The rig checks it when the test is over: here are the jobs to check it with.
    for job, does in enumerate(Does):
        local.executor.start(local.launch(Attempt(job, 1), does))


def test_a_checkpoint_that_a_job_tells_of_is_reported(local: LocalRig) -> None:
    said = "import dovetail_client, time; dovetail_client.checkpointed(); time.sleep(600)"
    local.executor.start(local.command(PYTHON, "-c", said))
    assert Saved(FIRST) in until(local, Saved)
