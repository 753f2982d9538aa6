"""What interruptions cost, in the world and to the last second."""

# ruff: noqa: E501 (a row is a line)

from __future__ import annotations

from pathlib import Path

import pytest
import rows

from dovetail.metrics.summary import summarise
from dovetail.simulator.experiment import Replay, replay

ROWS = """
# nothing is free unless it is said to be: a restart loses 30 s by default
1x4 | a:4@0+100 b:4@20+30 | srtf restart=30 -> a 0-20 50-160, b 20-50
1x4 | a:4@0+100 b:4@20+30 | srtf restart=0 -> a 0-20 50-130, b 20-50
# the first start is free, and a job that was never stopped pays nothing
1x4 | a:4@0+100 b:4@20+90 | srtf restart=30 -> a 0-100, b 100-190
# the order knows the price: stopping a for b would take a longer than letting it finish, not so here
1x4 | a:4@0+40 b:4@20+19 | srtf restart=30 -> a 0-20 39-89, b 20-39
# a job stopped during its restart starts over with the restart
1x4 | a:4@0+100 b:4@10+20 c:4@40+5 | srtf restart=30 -> a 0-10 30-40 45-165, b 10-30, c 40-45
# devices are free only after the stop; whoever comes meanwhile waits as well
1x4 | a:4@0+100 b:4@20+30 | srtf restart=0 stop=7 -> a 0-20 57-137, b 27-57
1x4 | a:4@0+100 b:4@20+30 | srtf restart=10 stop=7 -> a 0-20 57-147, b 27-57
1x4 | a:4@0+100 b:4@20+30 c:4@22+5 | srtf restart=0 stop=7 -> a 0-20 62-142, b 32-62, c 27-32
# two stops at once: each start waits for its own devices
2x2 | a:2@0+50 b:2@0+60 c:2@20+5 d:2@21+5 | srtf restart=0 stop=9 -> a 0-21 34-63, b 0-20 35-75, c 29-34, d 30-35
# a move costs what it costs, or else a restart
2x2 | a:1@0+20 b:1@0+2 c:2@3+5 d:1@0+20 | srtf consolidated restart=0 move=6 -> a 0-20, b 0-2, c 3-8, d 0-3 3-26
2x2 | a:1@0+20 b:1@0+2 c:2@3+5 d:1@0+20 | srtf consolidated restart=4 -> a 0-20, b 0-2, c 3-8, d 0-3 3-24
2x2 | a:1@0+20 b:1@0+2 c:2@3+5 d:1@0+20 | srtf consolidated restart=4 move=0 -> a 0-20, b 0-2, c 3-8, d 0-3 3-20
# spanning nodes: half as long again, but only for jobs that one node could hold
2x2 | a:1@0+90 b:1@0+90 c:2@0+10 | fifo worst-fit span=0.5 -> a 0-90, b 0-90, c 0-15
2x4 | a:6@0+10 | fifo span=0.5 -> a 0-10@n0+n1
3x2 | a:1@0+90 b:1@0+90 c:1@0+90 d:3@0+10 | fifo worst-fit span=0.5 -> a 0-90, b 0-90, c 0-90, d 0-15@n0+n1+n2
# two replicas on one node do not span
1x4 | a:2*2@0+10 | fifo span=0.5 -> a 0-10@n0
# work done at the slower rate counts as such: 10 of 30 seconds' work in 15, then alone on a node
2x2 | a:1@0+15 b:1@0+15 c:2@0+30 d:2@15+5,p=1 e:2@15+5,p=1 | priority:preempt=true worst-fit span=0.5 -> a 0-15, b 0-15, c 0-15 20-40, d 15-20, e 15-20
"""


@pytest.mark.parametrize("row", [line for line in ROWS.splitlines() if line[:1] not in ("", "#")])
def test_row(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.check(row, tmp_path, monkeypatch)


def test_the_price_is_in_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "1x4 | a:4@0+100 b:4@20+30 | srtf restart=30 -> a 0-20 50-160, b 20-50"
    result = summarise(rows.check(row, tmp_path, monkeypatch))
    assert result["jct"]["mean"] == (160 + 30) / 2
    assert result["wait"]["mean"] == (30 + 0) / 2
    assert (result["preemptions"], result["moves"]) == (1, 0)
    assert result["makespan"] == 160
    assert result["utilisation"]["gpu"] == 1.0
    assert result["costs"]["restart"] == 30.0


def test_moves_are_counted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "2x2 | a:1@0+20 b:1@0+2 c:2@3+5 d:1@0+20 | srtf consolidated -> a 0-20, b 0-2, c 3-8, d 0-3 3-20"
    result = summarise(rows.check(row, tmp_path, monkeypatch))
    assert (result["preemptions"], result["moves"]) == (0, 1)


CLUSTER_FILE = """
[[nodes]]
count = 1
gpus = 2
type = "old"

[[nodes]]
count = 1
gpus = 2
type = "new"

[costs]
restart = 8
first_start = 3
checkpoint_every = 4
by_model = {bert = 20}

[speed]
old = 0.5
new = 2.0
"""

FROM_FILE = """
# twice the speed of the reference on new, half on old; the first start costs 3 s
file.toml | a:2@0+10,type=old b:2@0+10,type=new | fifo -> a 0-23@n0, b 0-8@n1
# a preference is an order: new first, old when new is taken
file.toml | a:2@0+10,type=new|old b:2@0+10,type=new|old | fifo -> a 0-8@n1, b 0-23@n0
# restarts by model: bert takes 20 s, others 8 s
file.toml | a:2@0+40,type=new,model=bert b:2@13+4,type=new | srtf -> a 0-13 18-48, b 13-18
file.toml | a:2@0+40,type=new,model=gpt b:2@13+4,type=new | srtf -> a 0-13 18-36, b 13-18
# the node dies after 9 s (6 s of work at rate 2: 12); the last checkpoint was at 12
file.toml | a:2@0+30,type=new | fifo faults=n1.down@9/n1.up@20 -> a 0-9 20-37
# 8.5 s: 11 s of work, the last checkpoint at 8
file.toml | a:2@0+30,type=new | fifo faults=n1.down@8.5/n1.up@20 -> a 0-8.5 20-39
# what cannot resume loses all
file.toml | a:2@0+30,type=new,fixed | fifo faults=n1.down@9/n1.up@20 -> a 0-9 20-43
"""


@pytest.mark.parametrize(
    "row", [line for line in FROM_FILE.splitlines() if line[:1] not in ("", "#")]
)
def test_costs_and_speeds_of_a_cluster_file(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file.toml").write_text(CLUSTER_FILE)
    parsed = rows.parse(row)
    parsed.settings["restart_cost"] = None
    done = rows.run(parsed, tmp_path, monkeypatch)
    assert rows.outcome(parsed, done) == parsed.expected


def test_an_option_has_the_last_word_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file.toml").write_text(CLUSTER_FILE)
    row = "file.toml | a:2@0+40,type=new,model=gpt b:2@13+4,type=new | srtf restart=1 -> a 0-13 18-29, b 13-18"
    rows.check(row, tmp_path, monkeypatch)


@pytest.mark.parametrize(("cost", "ended"), [(0.0, 1000.0), (480.0, 1480.0)])
def test_profiling_takes_the_time_it_costs(tmp_path: Path, cost: float, ended: float) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,submit_time,gpus,duration,model\na,0,1,1000,gnmt\n")
    cluster = "1x8,cpus=24,mem=500"
    run = replay(Replay(str(trace), cluster, "synergy", profiling_cost=cost))
    assert summarise(run)["jct"]["mean"] == ended
