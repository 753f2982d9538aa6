"""What goes wrong: from files, from the trace, drawn from rates; and nothing gets lost by it."""

# ruff: noqa: E501 (a row is a line)

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import rows

from dovetail.metrics.summary import summarise
from dovetail.model.errors import UserError
from dovetail.model.event import NodeDown, NodeDraining, NodeUp
from dovetail.simulator.experiment import Replay, replay
from dovetail.simulator.faults import read_faults
from dovetail.simulator.spec import parse_cluster

ROWS = """
# a node dies and comes back; what ran there begins anew, what ran elsewhere does not notice
2x2 | a:2@0+10 b:2@0+10 | fifo faults=n0.down@4/n0.up@6 -> a 0-4@n0 6-16@n0, b 0-10@n1
# a job on two nodes dies with either, and waits until both are there
2x2 | a:4@0+10 | fifo faults=n1.down@4/n1.up@9 -> a 0-4 9-19
# its place may be elsewhere
2x2 | a:2@0+10 b:1@1+2 | fifo faults=n0.down@4 -> a 0-4@n0 4-14@n1, b 1-3@n1
# on a draining node what runs may finish
2x2 | a:2@0+10 b:2@0+4 c:2@5+3 | fifo faults=n1.drain@2/n1.up@8 -> a 0-10, b 0-4@n1, c 8-11@n1
1x2 | a:2@0+10 b:2@5+3 | fifo faults=n0.drain@2 -> a 0-10, b waiting
# a drained node that dies takes its jobs along
1x2 | a:2@0+10 | fifo faults=n0.drain@2/n0.down@5/n0.up@6 -> a 0-5 6-16
# partitions lose their own nodes
2x2 | a:2@0+9,tenant=r b:2@0+9,tenant=b | fifo parts=r:1/b:1 faults=n1.down@3/n1.up@5 -> a 0-9@n0, b 0-3@n1 5-14@n1
# nobody comes back: the run ends with the job waiting, also under orders that wake by the clock
1x2 | a:2@0+10 | las faults=n0.down@4 -> a 0-4 waiting
1x2 | a:2@0+10 b:2@1+5 | finish-time-fairness:round=5 faults=n0.down@4 -> a 0-4 waiting, b waiting
1x2 | a:2@0+10 b:2@1+5 | gittins:round=5 faults=n0.down@4 -> a 0-4 waiting, b waiting
1x2 | a:2@0+10 b:2@1+5 | las:thresholds=6 faults=n0.down@2 -> a 0-2 waiting, b waiting
# an end and an outage in the same second: the job is done
1x2 | a:2@0+4 b:2@1+5 | fifo faults=n0.down@4/n0.up@7 -> a 0-4, b 7-12
# attempts break where the trace says so, as often as they may be tried again
1x1 | a:1@0+10,breaks=3 b:1@1+2 | fifo faults=trace -> a 0-3 failed, b 3-5
1x1 | a:1@0+10,breaks=3;4,retries=2 b:1@1+2 | fifo faults=trace -> a 0-17, b 17-19
1x1 | a:1@0+10,breaks=3;4,retries=1 b:1@1+2 | fifo faults=trace -> a 0-7 failed, b 7-9
1x1 | a:1@0+10,breaks=3 | fifo -> a 0-10
1x1 | a:1@0+10,recorded-failed b:1@0+1 | fifo faults=trace -> a 0-10 failed, b 10-11
1x1 | a:1@0+10,recorded-failed b:1@0+1 | fifo -> a 0-10, b 10-11
# a break beyond the end never happens
1x1 | a:1@0+10,breaks=30 | fifo faults=trace -> a 0-10
"""


@pytest.mark.parametrize("row", [line for line in ROWS.splitlines() if line[:1] not in ("", "#")])
def test_row(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = rows.check(row, tmp_path, monkeypatch)
    counts = dict(summarise(done)["jobs"])
    assert counts.pop("submitted") == sum(counts.values())


TRACE = "generate:philly,jobs=300,load=0.8,seed=3"


def result_of(faults: str, policy: str = "fifo:skip=true", **more: Any) -> dict[str, Any]:
    result = summarise(replay(Replay(TRACE, "8x8", policy, faults=faults, **more)))
    return {
        key: result[key] for key in ("jobs", "jct", "wait", "makespan", "preemptions", "events")
    }


def add_up(jobs: dict[str, int]) -> bool:
    return jobs["submitted"] == sum(count for name, count in jobs.items() if name != "submitted")


@pytest.mark.parametrize(
    "faults", ["job=0.2", "job=0.2,retries=2", "node_mtbf=50000,repair=3000", "trace+job=0.1"]
)
@pytest.mark.parametrize("policy", ["fifo:skip=true", "srtf", "las:thresholds=3250/7200"])
def test_drawn_faults_are_reproducible_and_lose_nobody(policy: str, faults: str) -> None:
    first = result_of(faults, policy, seed=1)
    assert first == result_of(faults, policy, seed=1)
    assert first != result_of(faults, policy, seed=2)
    assert add_up(first["jobs"])
    assert first["jobs"]["submitted"] == 300
    assert first["jobs"]["running"] == first["jobs"]["waiting"] == 0


def test_retries_turn_failures_into_finished_jobs() -> None:
    failed = [result_of(f"job=0.3,retries={n}", seed=1)["jobs"]["failed"] for n in (0, 1, 9)]
    assert failed[0] > failed[1] > failed[2] == 0
    assert failed[0] == pytest.approx(90, abs=30)


def test_outages_cost_time() -> None:
    calm, stormy = result_of("job=0"), result_of("node_mtbf=20000,repair=10000", seed=1)
    assert stormy["jct"]["mean"] > calm["jct"]["mean"]
    assert stormy["jobs"]["finished"] == calm["jobs"]["finished"] == 300


def test_every_node_has_an_outage_now_and_then_and_they_alternate() -> None:
    faults = read_faults("node_mtbf=100,repair=10", parse_cluster("3x8"), 1)
    events = list(islice(faults.nodes, 3000))
    assert [time for time, _ in events] == sorted(time for time, _ in events)
    for node in range(3):
        mine = [(time, event) for time, event in events if event.node == node]
        assert [type(event) for _, event in mine[:4]] == [NodeDown, NodeUp, NodeDown, NodeUp]
        down = sum(b[0] - a[0] for a, b in zip(mine[::2], mine[1::2], strict=False))
        assert down / mine[-1][0] == pytest.approx(10 / 110, rel=0.2)


def test_files_rates_and_the_trace_can_be_joined(tmp_path: Path) -> None:
    file = tmp_path / "outages.csv"
    file.write_text("time,node,event\n9,n1,drain\n5,n0,down\n7,n0,up\n")
    faults = read_faults(f"trace+{file}+job=0.5,retries=3", parse_cluster("2x8"), 0)
    assert list(faults.nodes) == [(5.0, NodeDown(0)), (7.0, NodeUp(0)), (9.0, NodeDraining(1))]
    assert faults.as_recorded
    assert faults.breaks is not None
    assert faults.retries == 3


def test_no_faults_are_no_faults() -> None:
    faults = read_faults(None, parse_cluster("2x8"), 0)
    assert list(faults.nodes) == []
    assert faults.breaks is None
    assert not faults.as_recorded


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no/such/file.csv", "cannot be read"),
        ("job=1.5", "makes no sense"),
        ("job=-0.1", "makes no sense"),
        ("node_mtbf=-3", "makes no sense"),
        ("node_mtbf=ten", "is not a number"),
        ("mtbf=3", "did you mean 'node_mtbf'"),
        ("repair=3", "give node_mtbf= too"),
        ("job=", "is not a number"),
    ],
)
def test_faults_that_make_no_sense_are_refused(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        read_faults(text, parse_cluster("2x8"), 0)
