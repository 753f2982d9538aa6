"""What would have been: the same jobs replayed twice, and who gains by it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosting import Hosted, until

from dovetail.answers.what_if import compare, resized, setting
from dovetail.live import Box
from dovetail.model.errors import UserError
from dovetail.model.what_if import BOUNDS, SAME
from dovetail.simulator.experiment import Replay
from dovetail.simulator.spec import parse_cluster
from dovetail.traces.loader import load

TRACE, CLUSTER = "generate:tiresias480", "15x4"


def jobs() -> list[Any]:
    return list(load(TRACE, cluster_gpus=60).jobs)


def asked(policy: str, gpus: int | None = None, speed: float = 1.0) -> Any:
    machines = parse_cluster(CLUSTER)
    costs = {"restart_cost": 0.0, "placement": "count"}
    was = setting(Replay(TRACE, CLUSTER, "fifo", **costs), machines)  # type: ignore[arg-type]
    other = machines if gpus is None else resized(machines, gpus)
    then = setting(Replay(TRACE, CLUSTER, policy, **costs), other, speed)  # type: ignore[arg-type]
    return compare(jobs(), was, then)


def test_both_replays_are_the_simulators_own() -> None:
    answer = asked("srtf")
    assert answer.before.mean_jct == pytest.approx(14059.3, abs=0.05)
    assert answer.after.mean_jct == pytest.approx(2788.2, abs=0.05)
    assert answer.sooner + answer.later + answer.same == 480
    assert answer.before.waits[0] <= answer.before.waits[50] <= answer.before.waits[100]
    assert max(answer.before.busy) <= 60


def test_who_gains_and_who_loses_adds_up() -> None:
    answer = asked("srtf")
    half = len(BOUNDS)
    assert sum(answer.changes) == 480
    assert sum(answer.changes[:half]) == answer.sooner and answer.changes[half] == answer.same
    assert sum(answer.changes[half + 1 :]) == answer.later
    assert answer.delays[0] < 0 < answer.delays[-1]
    assert list(answer.delays) == sorted(answer.delays)
    assert sum(each.jobs for each in answer.sizes) == 480
    weighted = sum(each.jobs * each.before for each in answer.sizes) / 480
    assert weighted == pytest.approx(answer.before.mean_jct)
    sooner = sum(after - before < -SAME for before, after in answer.pairs)
    assert len(answer.pairs) == 480 and sooner == pytest.approx(answer.sooner, abs=1)


def test_nothing_changes_where_nothing_is_different() -> None:
    answer = asked("fifo")
    assert (answer.sooner, answer.later, answer.same) == (0, 0, 480)
    assert answer.before.mean_jct == answer.after.mean_jct


def test_more_and_faster_gpus_help() -> None:
    assert asked("fifo", gpus=120).after.mean_wait < asked("fifo").after.mean_wait / 2
    faster = asked("fifo", speed=2.0)
    assert faster.after.makespan < faster.before.makespan
    assert "2 times as fast" in faster.after.label


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UserError, match="no whole number of nodes of 4"):
        resized(parse_cluster(CLUSTER), 61)
    with pytest.raises(UserError, match="no job on record"):
        compare([], *[setting(Replay(TRACE, CLUSTER), parse_cluster(CLUSTER))] * 2)


def test_a_single_machine_grows_with_its_cores_and_memory() -> None:
    (node,) = resized(parse_cluster("1x4,cpus=16,mem=64"), 8).nodes
    assert (node.gpus, node.cpu, node.memory) == (8, 32_000, 131_072)


def test_the_command_answers_for_a_trace(dovetail: Callable[..., Any]) -> None:
    words = ["what-if", TRACE, "--cluster", CLUSTER, "--policy", "srtf"]
    told = dovetail(*words)
    assert told.code == 0, told.err
    assert "Instead: srtf on 60 GPUs." in told.out
    assert all(len(line) <= 80 for line in told.out.splitlines())
    assert "1 h to 1 d sooner ████" in told.out
    found = json.loads(dovetail(*words, "--json").out)
    assert found["after"]["jobs"] == 480


def test_the_command_asks_about_other_owners(dovetail: Callable[..., Any], tmp_path: Path) -> None:
    jobs, owners = tmp_path / "jobs.csv", tmp_path / "owners.toml"
    head = "job_id,submit_time,gpus,duration,tenant\n"
    jobs.write_text(head + "1,0,4,100,a\n2,1,4,100,a\n3,2,4,100,b\n")
    owners.write_text('[[tenants]]\nname = "a"\nnodes = 1\n[[tenants]]\nname = "b"\nnodes = 1\n')
    of_trace = ("what-if", jobs, "--cluster", "2x4", "--json")
    found = json.loads(dovetail(*of_trace, "--tenancy", f"cells:{owners}").out)
    by_tenant = {shift["name"]: shift for shift in found["users"]}
    assert by_tenant["b"]["wait_before"] > 0 == by_tenant["b"]["wait_after"]
    refused = dovetail(*of_trace, "--tenancy", f"cell:{owners}")
    assert (refused.code, "did you mean 'cells'?" in refused.err) == (2, True)


def test_a_page_is_written_where_it_can_be(
    dovetail: Callable[..., Any], tmp_path: Path, host: Hosted, box: Box
) -> None:
    """Of a trace, and of what a controller has seen."""
    file = tmp_path / "page.html"
    of_trace = ("what-if", TRACE, "--cluster", CLUSTER, "--gpus", "120")
    told = dovetail(*of_trace, "--html", file)
    assert told.code == 0 and told.out.splitlines()[-1] == f"With plots: {file}"
    assert "fifo on 120 GPUs" in file.read_text()
    assert dovetail(*of_trace, "--html", "-").out.startswith("<!doctype html>")
    refused = dovetail(*of_trace, "--html", tmp_path / "no" / "page.html")
    assert (refused.code, refused.out) == (2, "") and "cannot be written" in refused.err
    box.submit(["sleep", "0.2"], gpus=4, name="first")
    box.submit(["sleep", "0.2"], gpus=4, name="second")
    until(lambda: box.show(2).job.state == "done")
    mine = tmp_path / "mine.html"
    live = ("what-if", "--gpus", "8", "--data-dir", host.folder)
    assert dovetail(*live, "--html", mine).code == 0
    assert "on 8 GPUs" in mine.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say what is to be different"),
        ((TRACE, "--policy", "srtf"), "a trace needs machines"),
        ((TRACE, "--cluster", CLUSTER, "--policy", "srtff"), "did you mean 'srtf'"),
        ((TRACE, "--cluster", CLUSTER, "--gpu-speed", "0"), "write a number like 1.5"),
    ],
)
def test_wrong_questions_get_one_sentence(
    words: tuple[str, ...], said: str, dovetail: Callable[..., Any]
) -> None:
    told = dovetail("what-if", *words)
    assert (told.code, told.out) == (2, "")
    assert said in told.err
