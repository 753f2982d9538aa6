"""Scheduling, one case a line; `rows` says how a line is read."""

# ruff: noqa: E501 (a row is a line)

from __future__ import annotations

from pathlib import Path

import pytest
import rows

ROWS = """
# ---- strict: nobody overtakes
2x4 | a:4@0+10 b:2@1+5 | fifo -> a 0-10, b 1-6
1x4 | a:3@0+10 b:2@1+5 c:1@2+3 | fifo -> a 0-10, b 10-15, c 10-13
1x4 | a:1@0+10 b:4@0+5 c:1@0+1 | fifo -> a 0-10, b 10-15, c 15-16
1x2 | b:2@0+5 a:2@0+7 | fifo -> a 0-7, b 7-12
1x1 | a:1@0+4 b:1@4+2 | fifo -> a 0-4, b 4-6
1x4 | a:4@0+0 b:4@0+3 | fifo -> a 0-0, b 0-3
1x2 | a:2@0+10 b:2@1+8 c:1@2+3 | sjf -> a 0-10, b 13-21, c 10-13
1x2 | a:2@0+10 b:1@1+3 c:1@2+8 d:1@3+5 | ljf -> a 0-10, b 15-18, c 10-18, d 10-15
1x4 | a:4@0+10 b:4@1+2 c:1@2+3 d:2@3+4 | smallest-first -> a 0-10, b 14-16, c 10-13, d 10-14
1x1 | a:1@0+5 b:1@1+5 c:1@2+5,p=2 | priority -> a 0-5, b 10-15, c 5-10
1x1 | a:1@0+5 b:1@1+5,due=30 c:1@2+5,due=20 d:1@2+1 | deadline -> a 0-5, b 10-15, c 5-10, d 15-16
# ---- skip: what does not fit is looked past
1x4 | a:3@0+10 b:2@1+5 c:1@2+3 | fifo:skip=true -> a 0-10, b 10-15, c 2-5
1x2 | a:1@0+9 b:2@1+4 c:1@2+3 d:1@3+3 | sjf:skip=true -> a 0-9, b 9-13, c 2-5, d 5-8
1x2 | a:2@0+4 b:1@1+3 c:2@1+9 d:1@2+5 | ljf:skip=true -> a 0-4, b 13-16, c 4-13, d 13-18
1x4 | a:3@0+5 b:4@1+5 c:2@1+5,p=1 d:1@2+5 | priority:skip=true -> a 0-5, b 10-15, c 5-10, d 2-7
# ---- preempt: earlier jobs displace later ones
1x4 | a:4@0+10 b:4@2+3 | srtf -> a 0-2 5-13, b 2-5
1x4 | a:4@0+10 b:4@7+3 | srtf -> a 0-10, b 10-13
1x4 | a:4@0+10 b:1@1+12 | srtf -> a 0-10, b 10-22
1x4 | a:4@0+10 b:1@1+12 | srsf -> a 0-1 13-22, b 1-13
1x4 | a:2@0+9 b:2@0+9 c:4@3+2 | srtf -> a 0-3 5-11, b 0-3 5-11, c 3-5
1x4 | a:2@0+9 b:2@0+5 c:2@3+4 | srtf -> a 0-3 5-11, b 0-5, c 3-7
1x4 | a:4@0+10,fixed b:4@2+3 | srtf -> a 0-10, b 10-13
1x4 | a:3@0+10 b:4@1+5 c:1@2+20 | fifo:preempt=true -> a 0-10, b 10-15, c 2-10 15-27
1x1 | a:1@0+5 b:1@2+2,p=1 | priority:preempt=true -> a 0-2 4-7, b 2-4
1x4 | a:4@0+10 b:1@2+3 | smallest-first:preempt=true -> a 0-2 5-13, b 2-5
2x2 | a:2@0+9 b:2@0+9 c:2@3+2 | srtf consolidated -> a 0-9@n0, b 0-3@n1 5-11@n1, c 3-5@n1
# ---- attained service
1x1 | a:1@0+10 b:1@2+10 | las:round=4 -> a 0-4 8-12 16-18, b 4-8 12-16 18-20
1x2 | a:2@0+10 b:2@1+2 | las:thresholds=6 -> a 0-3 5-12, b 3-5
1x2 | a:2@0+10 b:2@1+2 c:1@1+9 | tiresias:thresholds=6 -> a 0-3 14-21, b 3-5, c 5-14
1x2 | a:2@0+10 b:2@0+2 | las:thresholds=6 -> a 0-3 5-12, b 3-5
# ---- backfill: holes are filled where no promise is hurt
1x4 | a:2@0+10 b:4@1+5 c:2@2+8 d:2@3+6 | fifo:backfill=easy -> a 0-10, b 10-15, c 2-10, d 15-21
1x4 | a:2@0+10 b:4@1+5 c:2@2+9 | fifo:backfill=easy -> a 0-10, b 10-15, c 15-24
1x4 | a:3@0+10 b:2@1+5 c:1@2+20 | fifo:backfill=easy -> a 0-10, b 10-15, c 2-22
1x8 | a:5@0+4 b:4@1+4 c:6@2+10 d:3@3+10 | fifo:backfill=easy -> a 0-4, b 4-8, c 13-23, d 3-13
1x8 | a:5@0+4 b:4@1+4 c:6@2+10 d:3@3+10 | easy -> a 0-4, b 4-8, c 13-23, d 3-13
1x8 | a:5@0+4 b:4@1+4 c:6@2+10 d:3@3+10 | fifo:backfill=conservative -> a 0-4, b 4-8, c 8-18, d 18-28
# ---- tenants
1x2 | a:1@0+9,tenant=r b:1@0+5,tenant=r c:1@1+3,tenant=r d:1@2+3,tenant=b | drf -> a 0-9, b 0-5, c 8-11, d 5-8
1x1 | a:1@0+5,tenant=r b:1@1+5,tenant=r c:1@2+5,tenant=b | fair-share -> a 0-5, b 10-15, c 5-10
# ---- packing: what aligns best with what is free, against what is short
1x4 | a:4@0+5 b:1@1+9 c:3@2+9 d:2@3+9 | tetris:srtf=0 -> a 0-5, b 5-14, c 5-14, d 14-23
1x4 | a:4@0+5 b:1@1+9 c:4@2+9 | tetris:srtf=0 -> a 0-5, b 14-23, c 5-14
1x4 | a:4@0+5 b:1@1+9 c:4@2+9 | tetris:srtf=9 -> a 0-5, b 5-14, c 14-23
1x4 | a:4@0+5 b:2@1+9 c:2@1+3 d:2@1+6 | tetris -> a 0-5, b 8-17, c 5-8, d 5-11
1x4,cpus=8 | a:1@0+20,cpus=6 b:1@1+9,cpus=2 c:2@1+9,cpus=1 | tetris:srtf=0 -> a 0-20, b 10-19, c 1-10
1x8,cpus=8 | a:6@0+9,cpus=2 b:2@0+9,cpus=4 c:1@0+9,cpus=5 | tetris:srtf=0 -> a 0-9, b 9-18, c 0-9
1x4 | a:1@0+9 b:4@1+2 c:1@2+9 | tetris:skip=false -> a 0-9, b 9-11, c 11-20
# ---- patience: who has waited that long is not passed any more
1x2 | a:1@0+4 b:2@1+3 c:1@2+4 d:1@4+4 e:1@6+4 f:1@8+4 | fifo:skip=true -> a 0-4, b 12-15, c 2-6, d 4-8, e 6-10, f 8-12
1x2 | a:1@0+4 b:2@1+3 c:1@2+4 d:1@4+4 e:1@6+4 f:1@8+4 | fifo:skip=true,patience=5 -> a 0-4, b 8-11, c 2-6, d 4-8, e 11-15, f 11-15
1x2 | a:1@0+4 b:2@1+3 c:1@2+4 d:1@4+4 e:1@6+4 f:1@6+2 | fifo:skip=true,patience=5 -> a 0-4, b 8-11, c 2-6, d 4-8, e 11-15, f 6-8
1x3 | a:1@0+4 b:2@1+3 c:2@2+9 d:1@4+4 e:1@6+4 | fifo:skip=true,patience=99 -> a 0-4, b 1-4, c 4-13, d 4-8, e 8-12
1x2 | a:1@0+4 b:2@1+3 c:1@2+4 d:1@4+4 e:1@6+4 f:1@8+4 | smallest-first:skip=true,patience=5 -> a 0-4, b 8-11, c 2-6, d 4-8, e 11-15, f 11-15
1x2 | a:1@0+4 b:2@1+3 c:1@2+4 d:1@4+4 e:1@6+4 f:1@8+4 | tetris:srtf=9,patience=5 -> a 0-4, b 8-11, c 2-6, d 4-8, e 11-15, f 11-15
1x2 | a:1@0+4,tenant=r b:2@1+3,tenant=r c:1@2+4,tenant=b d:1@4+4,tenant=b e:1@6+4,tenant=b | drf:patience=5 -> a 0-4, b 8-11, c 2-6, d 4-8, e 11-15
1x4+2x2 | a:1@0+3 b:4@0+9 c:1@0+9 d:4@1+9 | fifo:patience=2 consolidated -> a 0-3, b 3-12, c 3-12, d 12-21
1x1 | a:1@0+3 b:1@1+9 c:1@2+3 d:1@4+3 e:1@7+3 | sjf -> a 0-3, b 12-21, c 3-6, d 6-9, e 9-12
1x1 | a:1@0+3 b:1@1+9 c:1@2+3 d:1@4+3 e:1@7+3 | sjf:patience=6 -> a 0-3, b 9-18, c 3-6, d 6-9, e 18-21
1x2 | a:1@0+3 b:2@1+9 c:2@2+3 d:1@4+2 | sjf:backfill=easy,patience=4 -> a 0-3, b 6-15, c 3-6, d 15-17
1x1 | a:1@0+9 b:1@1+3 c:1@4+3 d:1@7+3 | srtf -> a 0-1 10-18, b 1-4, c 4-7, d 7-10
1x1 | a:1@0+9 b:1@1+3 c:1@4+3 d:1@7+3 | srtf:patience=5 -> a 0-1 6-14, b 1-4, c 4-6 14-15, d 15-18
1x1 | a:1@0+9 b:1@1+9 c:1@2+9 | las:thresholds=4,patience=6 -> a 0-4 10-15, b 4-8 15-20, c 8-10 20-27
# ---- costs
1x4 | a:4@0+10 b:4@2+3 | srtf restart=4 -> a 0-2 5-17, b 2-5
1x4 | a:4@0+10 b:4@2+3 | srtf stop=2 -> a 0-2 7-15, b 4-7
2x2 | a:1@0+20 b:1@0+2 c:2@3+5 d:1@0+20 | srtf consolidated -> a 0-20, b 0-2, c 3-8@n1, d 0-3@n1 3-20@n0
2x2 | a:1@0+20 b:1@0+2 c:2@3+5 d:1@0+20 | srtf consolidated move=6 -> a 0-20, b 0-2, c 3-8, d 0-3 3-26
# ---- spanning nodes
2x2 | a:1@0+20 b:1@0+20 c:2@0+8 | fifo worst-fit span=0.5 -> a 0-20, b 0-20, c 0-12@n0+n1
2x2 | a:4@0+8 | fifo span=0.5 -> a 0-8@n0+n1
2x2 | a:1@0+20 b:1@0+6 c:2@1+8 | fifo:skip=true consolidated span=0.5 -> a 0-20, b 0-6, c 1-9@n1
# ---- partitions
2x2 | a:2@0+10,tenant=r b:2@0+5,tenant=r c:1@0+3,tenant=b | fifo parts=r:1/b:1 -> a 0-10@n0, b 10-15@n0, c 0-3@n1
2x2 | a:4@0+9,tenant=r b:1@0+5,tenant=g c:1@1+2,tenant=b | fifo parts=r:1/b:1 -> a rejected, b rejected, c 1-3@n1
2x2 | a:2@0+9,tenant=r b:2@1+3,tenant=b c:2@2+2,tenant=r | srtf parts=r:1/b:1 -> a 0-2 4-11, b 1-4@n1, c 2-4@n0
# ---- GPU types
1x2,type=A+1x4,type=B | a:2@0+5,type=B b:2@0+5,type=A|B c:2@0+5 | fifo -> a 0-5@n1, b 0-5@n0, c 0-5@n1
1x2,type=A+1x4,type=B | a:2@0+9,type=A b:1@1+5,type=A c:2@2+2,type=B|A | fifo -> a 0-9, b 9-14@n0, c 9-11@n1
1x2,type=A+1x4,type=B | a:2@0+9,type=A b:1@1+5,type=A|B c:1@1+5,type=C | fifo -> a 0-9, b 1-6@n1, c rejected
1x2,type=A+1x4,type=B | a:5@0+3 b:4@0+3 | fifo -> a rejected, b 0-3@n1
# ---- shares of a device
1x1 | a:0.5@0+10 b:0.5@1+4 c:0.5@2+4 | fifo -> a 0-10, b 1-5, c 5-9
1x1 | a:0.5@0+10 b:1@1+4 c:0.4@2+3 | fifo:skip=true -> a 0-10, b 10-14, c 2-5
1x2 | a:0.6@0+9 b:0.6@0+9 c:0.4@1+2 d:0.5@1+2 | fifo -> a 0-9, b 0-9, c 1-3, d 9-11
# ---- CPU and memory
1x4,cpus=8 | a:1@0+10,cpus=6 b:1@1+5,cpus=4 c:1@2+3,cpus=2 | fifo:skip=true -> a 0-10, b 10-15, c 2-5
1x4,cpus=8,mem=64 | a:1@0+10,mem=60 b:1@1+5,mem=8 c:1@2+1,mem=2 | sjf -> a 0-10, b 10-15, c 2-3
1x4,cpus=8 | a:2@0+10 b:1@1+5,cpus=5 c:1@2+3 | fifo:skip=true -> a 0-10, b 10-15, c 2-5
1x2,cpus=8 | a:2@0+10,cpus=4 b:0@1+5,cpus=4 c:0@2+3,cpus=1 | fifo -> a 0-10, b 1-6, c 6-9
1x2 | a:2@0+9 b:0@1+5,cpus=64 | fifo -> a 0-9, b 1-6
1x2,cpus=4+1x0,cpus=16 | a:0@0+5,cpus=8 b:2@0+5,cpus=4 | fifo -> a 0-5@n1, b 0-5@n0
# ---- rejected at the door
1x4 | a:5@0+3 b:1@1+2 | fifo -> a rejected, b 1-3
1x2,cpus=8 | a:0@0+5,cpus=9 b:1@0+5,cpus=9 c:1@0+2 | fifo -> a rejected, b rejected, c 0-2
2x4 | a:1*5@0+3 b:5@0+3 | fifo -> a rejected, b 0-3@n0+n1
# ---- replicas
2x4 | a:2*3@0+5 b:1@0+2 c:2@0+3 | fifo:skip=true -> a 0-5@n0+n1, b 0-2@n0, c 2-5@n0+n1
2x4 | a:1@0+9 b:1@0+9 c:2*4@1+2 | fifo:skip=true worst-fit -> a 0-9@n0, b 0-9@n1, c 9-11@n0+n1
# ---- what goes wrong
2x2 | a:2@0+10 b:2@0+10 | fifo faults=n0.down@4/n0.up@6 -> a 0-4@n0 6-16@n0, b 0-10@n1
2x2 | a:2@0+10 b:2@0+4 c:2@5+3 | fifo faults=n1.drain@2/n1.up@8 -> a 0-10, b 0-4@n1, c 8-11@n1
1x2 | a:2@0+10 | fifo faults=n0.down@4 -> a 0-4 waiting
1x1 | a:1@0+10,breaks=3 b:1@1+2 | fifo faults=trace -> a 0-3 failed, b 3-5
1x1 | a:1@0+10,breaks=3,retries=1 | fifo faults=trace -> a 0-13
1x1 | a:1@0+10,recorded-failed | fifo faults=trace -> a 0-10 failed
"""

CPU_BACKFILL = "a backfilling walk ends when no device is idle, before it sees CPU-only jobs"
CPU_NODES = "CPU-only jobs take the first pool, not the nodes without GPUs"


RESERVED = "a reserved start that is moved was never dispatched: the world fails on the change"
DRAINED = "by count, a victim on a draining node is thought to free its devices"
PUT_BACK = "a lifted job on a draining node cannot be put back, so it is stopped for nothing"

ONCE_WRONG = [
    (
        "1x4+1x2 | a:4@0+50 b:2@0.5+10 c:2@1+30 d:4@11+1 | srtf consolidated stop=20 -> a 0-1 22-71, b 0.5-10.5, c 11-41@n1, d 21-22@n0",
        RESERVED,
    ),
    (
        "2x2 | a:2@0+50 b:2@1+40 c:2@5+3 | srtf faults=n0.drain@2 -> a 0-50@n0, b 1-5 8-44, c 5-8@n1",
        DRAINED,
    ),
    (
        "2x2 | a:2@0+50 b:2@1+40 c:2@5+3 | srtf consolidated faults=n0.drain@2 -> a 0-50@n0, b 1-5 8-44, c 5-8@n1",
        PUT_BACK,
    ),
    (
        "1x1,cpus=4 | a:1@0+9,cpus=2 b:1@1+1,cpus=2 c:0@2+3,cpus=2 | easy -> a 0-9, b 9-10, c 2-5",
        CPU_BACKFILL,
    ),
    ("1x2,cpus=4+1x0,cpus=4 | a:0@0+5,cpus=2 | fifo -> a 0-5@n1", CPU_NODES),
]


def lines(table: str) -> list[str]:
    return [line for line in table.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("row", lines(ROWS))
def test_row(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.check(row, tmp_path, monkeypatch)


@pytest.mark.parametrize(("row", "defect"), ONCE_WRONG)
def test_row_that_was_once_wrong(
    row: str, defect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.check(row, tmp_path, monkeypatch)
