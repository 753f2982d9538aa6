"""What Slurm writes, in the ways its releases write it; and what is made of it. No Slurm needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from executor_contract import small

from dovetail.executors.local.folders import Folder
from dovetail.executors.protocol import Attempt, Ended, Fault, Launch, Report
from dovetail.executors.slurm.commands import CommandLine, Trouble
from dovetail.executors.slurm.gres import Gpus, gpus
from dovetail.executors.slurm.hostlists import names, numbers
from dovetail.executors.slurm.others import Others
from dovetail.executors.slurm.reading import Piece, SlurmJob, jobs, nodes
from dovetail.executors.slurm.run import Deed, Run
from dovetail.executors.slurm.site import Questions, Site, closed, configuration, version
from dovetail.model.allocation import NOTHING, Part
from dovetail.model.node import Node

FIRST = Attempt(1, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("gpu[07-09,12],login", ["gpu07", "gpu08", "gpu09", "gpu12", "login"]),
        ("r[1-2]c[1-2]-ib", ["r1c1-ib", "r1c2-ib", "r2c1-ib", "r2c2-ib"]),
        ("", []),
    ],
)
def test_short_lists_of_names_are_written_out(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_short_lists_of_numbers_are_written_out() -> None:
    assert numbers("0-1,3") == [0, 1, 3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:v100:4", Gpus(4, "v100")),
        ("gpu:8(S:0-1)", Gpus(8)),
        ("gpu:a100:2(IDX:0,3)", Gpus(2, "a100", (0, 3))),
        ("gres:gpu:3", Gpus(3)),
        ("gres/gpu:h100=2", Gpus(2, "h100")),
        ("gpu:1080ti:1,gpu:a40:2,shard:8", Gpus(3, "1080ti+a40")),
        ("gpu:v100:0(IDX:N/A)", Gpus(0, "v100")),
        ("craynetwork:1", Gpus()),
        ("", Gpus()),
    ],
)
def test_gpus_are_read_as_slurm_writes_them(text: str, expected: Gpus) -> None:
    assert gpus(text) == expected


PLAIN: dict[str, Any] = {"job_id": 7, "job_state": "RUNNING", "gres_detail": ["gpu:a:2(IDX:0-1)"]}
SHAPES: dict[str, dict[str, Any]] = {
    "22.05": {
        "job_resources": {
            "nodes": "n3",
            "allocated_cpus": 4,
            "allocated_nodes": [
                {
                    "nodename": "n3",
                    "memory_allocated": 900,
                    "sockets": {"0": {"cores": {"0": "allocated", "5": "allocated"}}},
                }
            ],
        },
    },
    "23.11": {
        "job_state": ["RUNNING"],
        "cpus": {"set": True, "infinite": False, "number": 4},
        "job_resources": {
            "nodes": "n3",
            "allocated_cores": 2,
            "allocated_cpus": 0,
            "allocated_nodes": [
                {
                    "nodename": "n3",
                    "memory_allocated": 900,
                    "sockets": {"0": {"cores": {"0": "allocated", "5": "allocated"}}},
                }
            ],
        },
    },
    "nodes alone": {
        "nodes": "n3",
        "cpus": {"set": True, "number": 4},
        "memory_per_node": {"set": True, "number": 900},
        "job_resources": {"nodes": "n3", "allocated_nodes": None},
    },
    "24.11": {
        "job_state": ["RUNNING"],
        "job_resources": {
            "select_type": ["CORE"],
            "nodes": {
                "count": 1,
                "list": "n3",
                "allocation": [
                    {
                        "name": "n3",
                        "cpus": {"count": 4, "used": 0},
                        "memory": {"used": 0, "allocated": 900},
                    }
                ],
            },
        },
    },
}


@pytest.mark.parametrize("release", SHAPES)
def test_what_a_job_holds_is_read_in_the_shape_of_every_release(release: str) -> None:
    (job,) = jobs({"jobs": [{**PLAIN, **SHAPES[release]}]})
    assert job.pieces == (Piece("n3", 2, 4, 900, (0, 1)),)
    assert job.holds and not job.waits and not job.over


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (768, (3, None)),
        (9, (None, 9)),
        ({"return_code": {"set": True, "number": 3}, "signal": {"id": {"set": False}}}, (3, None)),
        ({"return_code": 0, "signal": {"signal_id": {"set": True, "number": 15}}}, (None, 15)),
    ],
)
def test_exit_codes_are_wait_statuses_or_objects(said: Any, expected: object) -> None:
    (job,) = jobs({"jobs": [{**PLAIN, "exit_code": said}]})
    assert (job.code, job.signal) == expected


def test_a_job_that_ends_still_holds_its_nodes() -> None:
    (job,) = jobs({"jobs": [{**PLAIN, "job_state": ["CANCELLED", "COMPLETING"]}]})
    assert job.holds and not job.over


def test_nodes_and_why_they_are_closed() -> None:
    said = {"name": "n1", "cpus": 8, "real_memory": 100, "gres": "gpu:a:4", "threads": 2}
    older = {**said, "state": "idle", "state_flags": ["DRAIN"], "reason": "fans", "features": "x,y"}
    newer = {**said, "state": ["DOWN", "NOT_RESPONDING"], "features": ["x", "y"]}
    first, second = nodes({"nodes": [older, newer]})
    assert (first.features, second.features) == (("x", "y"), ("x", "y"))
    assert (closed(first), closed(second)) == ("fans", "down in Slurm")
    (fine,) = nodes({"nodes": [{**said, "state": "mixed", "state_flags": []}]})
    assert closed(fine) == ""


@pytest.mark.parametrize("answer", [{}, {"jobs": 1}, {"jobs": [1]}, {"jobs": [{"job_id": 1}]}])
def test_what_cannot_be_read_is_trouble_and_no_empty_list(answer: dict[str, Any]) -> None:
    with pytest.raises(Trouble):
        jobs(answer)


def test_the_release_and_the_settings_are_read() -> None:
    assert version("slurm-wlm 22.05.8\n") == (22, 5)
    assert configuration("MinJobAge               = 300 sec\nnothing\n") == {"MinJobAge": "300 sec"}


# ---- how it ended ----------------------------------------------------------------------------


def seen(state: str, **more: Any) -> SlurmJob:
    said = {"job_id": 7, "job_state": state, "comment": "mark", **more}
    return jobs({"jobs": [said]})[0]


def run_in(folder: Path) -> Run:
    return Run(Launch(FIRST, "x", ("true",), small(), Path("/")), "mark", Folder(folder))


def told(folder: Path, *answers: SlurmJob) -> list[Report]:
    run = run_in(folder)
    return [report for job in answers for report in run.look([job], 0.0)]


@pytest.mark.parametrize(
    ("state", "fault", "reason"),
    [
        ("TIMEOUT", Fault.JOB, "ended by Slurm: its time limit was reached"),
        (
            "OUT_OF_MEMORY",
            Fault.JOB,
            "out of memory: it wanted more than the 256 MiB it was granted",
        ),
        ("PREEMPTED", Fault.ENGINE, "ended by Slurm: preempted"),
        ("BOOT_FAIL", Fault.ENGINE, "ended by Slurm: boot fail"),
        ("CANCELLED", Fault.OTHERS, "cancelled in Slurm by somebody else"),
    ],
)
def test_every_bad_end_has_a_reason(tmp_path: Path, state: str, fault: Fault, reason: str) -> None:
    assert told(tmp_path, seen(state)) == [Ended(FIRST, None, None, reason, fault)]


def test_a_shell_that_tells_of_a_signal_is_understood(tmp_path: Path) -> None:
    assert told(tmp_path, seen("FAILED", exit_code=143 << 8)) == [Ended(FIRST, None, 15)]


def test_what_was_taken_back_is_known_to_whoever_comes_next(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    assert list(run.look([seen("PENDING", state_reason="Resources")], 0.0)) == []
    assert run.wants(100.0, 30.0) is Deed.WITHDRAW
    reason = "Slurm did not start it on its nodes in time (Resources)"
    assert told(tmp_path, seen("CANCELLED")) == [Ended(FIRST, None, None, reason, Fault.ENGINE)]
    # Unless it began after all: then others ended it.
    told(tmp_path, seen("RUNNING"))
    assert told(tmp_path, seen("CANCELLED"))[-1].fault is Fault.OTHERS


def test_of_two_submissions_the_one_that_had_nothing_to_do_says_nothing(tmp_path: Path) -> None:
    first = seen("COMPLETED", exit_code=0)
    second = seen("RUNNING")._replace(id=8, leader=8)
    run = run_in(tmp_path)
    # The second was first, and has not come to write its number down.
    kinds = [type(each).__name__ for each in run.look([first, second], 0.0)]
    assert (kinds, run.id, run.over) == (["Running"], 8, False)


# ---- others ----------------------------------------------------------------------------------


def site() -> Site:
    machines = (Node("n1", 4, 8000, 1000, "a"), Node("n2", 4, 8000, 1000, "a"))
    questions = Questions(CommandLine(), (22, 5))
    return Site(machines, {"n1": 0, "n2": 1}, {"n1": 1, "n2": 1}, questions, "all", "22.05", {})


def foreign(number: int, count: int, state: str = "RUNNING") -> SlurmJob:
    job = seen(state)
    return job._replace(id=number, pieces=(Piece("n2", count, 2, 50),))


def test_what_others_hold_stays_on_its_places_and_off_ours() -> None:
    others = Others(site())
    assert others.held([foreign(1, 1)], {1: 0b0001}).parts == (Part(1, 0b1000, 2000, 50),)
    both = [foreign(1, 1), foreign(2, 1)]
    assert others.held(both, {1: 0b0011}).parts == (Part(1, 0b1100, 4000, 100),)
    assert others.held([foreign(2, 1)], {1: 0b0011}).parts[0].devices.bit_count() == 1
    assert others.held([], {}) == NOTHING


def test_no_more_places_are_taken_than_there_are() -> None:
    held = Others(site()).held([foreign(1, 4)], {1: 0b0111})
    assert held.parts[0].devices == 0b1000


def test_a_job_of_others_that_ends_still_has_its_gpus() -> None:
    others = Others(site())
    others.held([foreign(1, 2)], {})
    ending = foreign(1, 0, "COMPLETING")
    assert others.held([ending], {}).parts[0].devices.bit_count() == 2
