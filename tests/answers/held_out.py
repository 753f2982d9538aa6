"""How well `when` does on pieces of Philly that nothing was chosen on: a line for each.

`python tests/answers/held_out.py TRACE [PROCESSES]`, where TRACE is `philly_82k.csv.gz`. Takes five
minutes on 16 cores, so no test calls it: it is for who changes how ranges are made.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date, timedelta
from multiprocessing import Pool
from typing import NamedTuple

from replayed import Oracle, scores

from dovetail.answers.when import Effort
from dovetail.simulator.experiment import Replay
from dovetail.traces.loader import load

ASKED = 100
EVERY = 10
FEW = 20
"""With fewer answers that came true nothing is said of a piece."""


class Piece(NamedTuple):
    """A week on too few machines; `drawn`: any of those who wait are asked about."""

    trace: str
    month: int
    day: int
    cluster: str
    policy: str
    drawn: bool

    def __str__(self) -> str:
        who = "any who wait" if self.drawn else "who comes"
        return f"{self.month}-{self.day:02} {self.cluster} {self.policy}, {who}"


WEEKS = (
    ("fifo", "60x8", False, ("10-01", "10-08", "10-15", "10-22")),
    ("fifo", "60x8", True, ("10-08", "10-22")),
    ("fifo:skip=true", "40x8", False, ("10-08", "10-29", "11-05", "11-19", "12-03")),
    ("fifo:skip=true", "40x8", True, ("10-29", "11-19")),
    ("sjf:skip=true", "32x8", False, ("10-15", "11-12", "11-19")),
    ("sjf:skip=true", "32x8", True, ("11-12",)),
    ("srtf", "32x8", False, ("10-29", "11-19", "12-03")),
    ("srtf", "32x8", True, ("10-29", "11-19")),
    ("las", "32x8", True, ("10-08", "11-19")),
    ("easy", "48x8", False, ("10-22", "11-26")),
)


def asked(piece: Piece) -> str:
    """What was said of it, and how good that was."""
    first = date(2017, piece.month, piece.day)
    week = load(piece.trace, start=str(first), stop=str(first + timedelta(days=7)))
    settings = Replay("x", piece.cluster, piece.policy, predictor="history", restart_cost=0.0)
    oracle = Oracle(settings, EVERY, Effort(20, 20, 60.0), piece.drawn)
    oracle.run(list(week.jobs), ASKED)
    if len([each for each in oracle.asked.values() if each.end]) < FEW:
        return f"{piece}: too few had to wait"
    starts, ends = scores(oracle)
    return f"{piece}\n  starts: {starts}\n  ends:   {ends}"


def main(arguments: Sequence[str]) -> int:
    """Print the lines as they come."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    pieces = [
        Piece(arguments[0], *map(int, day.split("-")), cluster, policy, drawn)
        for policy, cluster, drawn, days in WEEKS
        for day in days
    ]
    with Pool(int(arguments[1]) if arguments[1:] else None) as pool:
        for line in pool.imap_unordered(asked, pieces):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
