"""Schedules worked out by hand, from the definitions in the papers and textbooks."""

# ruff: noqa: E501 (a row is a line)

from __future__ import annotations

from pathlib import Path

import pytest
import rows

BACKFILL = """
# 10 GPUs; the third job needs 8, which are free at 10; the fourth just fits before, the fifth beside
1x10 | a:6@0+10 b:4@0+5 c:8@1+6 d:4@2+5 e:2@3+20 f:2@4+3 | easy -> a 0-10, b 0-5, c 10-16, d 5-10, e 10-30, f 16-19
1x10 | a:6@0+10 b:4@0+5 c:8@1+6 d:4@2+5 e:2@3+20 f:2@4+3 | fifo:backfill=conservative -> a 0-10, b 0-5, c 10-16, d 5-10, e 10-30, f 16-19
# one second longer, and the fourth would delay the third
1x10 | a:6@0+10 b:4@0+5 c:8@1+6 d:4@2+6 e:2@3+20 | easy -> a 0-10, b 0-5, c 10-16, d 16-22, e 5-25
# without backfilling everybody stands behind the third
1x10 | a:6@0+10 b:4@0+5 c:8@1+6 d:4@2+5 e:2@3+20 | fifo -> a 0-10, b 0-5, c 10-16, d 16-21, e 16-36
# only the first in line has a promise under EASY; under conservative backfilling everyone has
1x8 | a:5@0+4 b:4@1+4 c:6@2+10 d:3@3+10 | easy -> a 0-4, b 4-8, c 13-23, d 3-13
1x8 | a:5@0+4 b:4@1+4 c:6@2+10 d:3@3+10 | fifo:backfill=conservative -> a 0-4, b 4-8, c 8-18, d 18-28
# promises rest on beliefs: a's owner declared 20 seconds, so c may run before b
1x4 | a:2@0+5,estimate=20 b:4@1+5,estimate=5 c:2@2+10,estimate=10 | easy predictor=declared -> a 0-5, b 12-17, c 2-12
# a is overdue and may end any moment: c would be in b's way
1x4 | a:2@0+10,estimate=3 b:4@1+5,estimate=5 c:2@4+9,estimate=9 | easy predictor=declared -> a 0-10, b 10-15, c 15-24
# shortest first among those that fit into the hole
1x4 | a:3@0+10 b:4@1+2 c:1@2+9 d:1@3+7 e:1@3+6 | sjf:backfill=easy -> a 0-10, b 10-12, c 12-21, d 12-19, e 3-9
# promises are for nodes, not for counts: c finds two free GPUs, but they are b's
2x2 | a:2@0+10 b:2@0+4 c:4@1+5 d:1@5+5 e:1@5+6 | easy consolidated -> a 0-10, b 0-4, c 10-15, d 5-10, e 15-21
"""

ATTAINED = """
# a holds 4 GPUs and passes 3250 GPU-seconds after 812.5 s, not after 3250; the same for b
1x4 | a:4@0+1000 b:4@100+500 | las:thresholds=3250/7200 -> a 0-812.5 1312.5-1500, b 812.5-1312.5
# in the second queue the running b stays until 7200; then a, until both are in the last
1x4 | a:4@0+2000 b:4@1+2000 | las:thresholds=3250/7200 -> a 0-812.5 2612.5-3800, b 812.5-2612.5 3800-4000
# one GPU, one second is one GPU-second
1x1 | a:1@0+12 b:1@1+2 | las:thresholds=10 -> a 0-10 12-14, b 10-12
# inside a queue the running one stays: no ping-pong
1x1 | a:1@0+50 b:1@1+9 c:1@2+5 | las:thresholds=100 -> a 0-50, b 50-59, c 59-64
# promoted after waiting twice as long as it ran: a at 30 after 10, b at 70 after 20
1x1 | a:1@0+100 b:1@10+60 | las:thresholds=10,promote=2 -> a 0-10 30-70 110-160, b 10-30 70-110
# smaller jobs slip past one that does not fit, also from a lower queue
1x4 | a:3@0+9 b:2@1+9 c:1@2+3 | las:thresholds=1000 -> a 0-9, b 9-18, c 2-5
# continuous: whoever has least goes first, looked at every 10 s; two GPUs age twice as fast
1x2 | a:2@0+20 b:1@5+30 | las:round=10 -> a 0-10 30-40, b 10-30 40-50
"""

FAIRNESS = """
# past use: red used 100 by second 100, blue 50 by 150; a short memory forgives red, a long one does not
1x1 | a:1@0+100,tenant=r b:1@1+50,tenant=b c:1@2+10,tenant=r d:1@3+10,tenant=b | fair-share:half_life=40 -> a 0-100, b 100-150, c 150-160, d 160-170
1x1 | a:1@0+100,tenant=r b:1@1+50,tenant=b c:1@2+10,tenant=r d:1@3+10,tenant=b | fair-share:half_life=80 -> a 0-100, b 100-150, c 160-170, d 150-160
# with twice the weight red may use twice as much
1x1 | a:1@0+60,tenant=r b:1@1+50,tenant=b c:1@2+10,tenant=r d:1@3+10,tenant=b | fair-share:weights=r*2 -> a 0-60, b 60-110, c 110-120, d 120-130
# eight GPUs filled progressively from nothing: both tenants end with four
1x8 | a:2@0+9,tenant=r b:2@0+9,tenant=r c:2@0+9,tenant=r d:1@0+9,tenant=b e:1@0+9,tenant=b f:1@0+9,tenant=b g:1@0+9,tenant=b h:1@0+9,tenant=b | drf -> a 0-9, b 0-9, c 9-18, d 0-9, e 0-9, f 0-9, g 0-9, h 9-18
# with three times the weight red ends with six of the eight
1x8 | a:2@0+9,tenant=r b:2@0+9,tenant=r c:2@0+9,tenant=r d:1@0+9,tenant=b e:1@0+9,tenant=b f:1@0+9,tenant=b | drf:weights=r*3 -> a 0-9, b 0-9, c 0-9, d 0-9, e 0-9, f 9-18
# finish-time fairness: at 50 a will have taken 100 of the 200 s half a GPU takes, b 60 of 20
1x1 | a:1@0+100 b:1@0+10 | finish-time-fairness:round=50 -> a 0-50 60-110, b 50-60
1x1 | a:1@0+100 b:1@0+10 | themis:round=25 -> a 0-25 35-110, b 25-35
"""

ONE_PLAN = "inside one plan a tenant's share counts the GPUs it is given, not CPU and memory"

ONCE_WRONG = [
    (
        "1x1,cpus=9,mem=18 | a:0@0+9,cpus=1,mem=4,tenant=r b:0@0+9,cpus=1,mem=4,tenant=r c:0@0+9,cpus=1,mem=4,tenant=r d:0@0+9,cpus=1,mem=4,tenant=r e:0@0+9,cpus=3,mem=1,tenant=b f:0@0+9,cpus=3,mem=1,tenant=b g:0@0+9,cpus=3,mem=1,tenant=b | drf -> a 0-9, b 0-9, c 0-9, d 9-18, e 0-9, f 0-9, g 9-18",
        ONE_PLAN,
    ),
]


def lines(*tables: str) -> list[str]:
    return [line for table in tables for line in table.splitlines() if line[:1] not in ("", "#")]


@pytest.mark.parametrize("row", lines(BACKFILL, ATTAINED, FAIRNESS))
def test_row(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.check(row, tmp_path, monkeypatch)


@pytest.mark.parametrize(("row", "defect"), ONCE_WRONG)
def test_row_that_was_once_wrong(
    row: str, defect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.check(row, tmp_path, monkeypatch)
