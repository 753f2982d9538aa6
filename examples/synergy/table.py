"""Our figures beside those of Synergy's artifact, on its own job lists, one row per run of it.

    python examples/synergy/table.py                     # prints the table
    python examples/synergy/table.py --markdown out.md   # and writes it as Markdown

It reads `summary.csv` and `NAME.jobs.csv` of a folder: what the artifact made of four job lists.
Restarts, moves and spanning nodes are free here, as they are there.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from pathlib import Path
from typing import NamedTuple

from dovetail.metrics.summary import summarise
from dovetail.simulator.experiment import Replay, grid

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "synergy"
#: its FIFO starts every round from an empty cluster and looks past what does not fit
POLICIES = {"FIFO": "fifo:skip=true,preempt=true", "SRTF": "srtf", "LAS": "las"}
ALLOCATORS = {"opt": "optimal"}
SERVER = "8,cpus=24,mem=500"
SMALL = ("static100", "dynamic100")
HEADER = ("trace", "policy", "mechanism", "JCT theirs", "ours", "", "makespan theirs", "ours", "")


class Row(NamedTuple):
    """One run of the artifact and ours: hours."""

    trace: str
    policy: str
    mechanism: str
    their_jct: float
    our_jct: float
    their_makespan: float
    our_makespan: float

    def cells(self) -> list[str]:
        """As text; differences in percent of theirs."""
        cells = [self.trace, self.policy, self.mechanism]
        for theirs, ours in (
            (self.their_jct, self.our_jct),
            (self.their_makespan, self.our_makespan),
        ):
            cells += [
                f"{theirs:.2f}",
                f"{ours:.2f}",
                f"{ours / theirs - 1:+.1%}".replace("%", " %"),
            ]
        return cells


def asked(data: Path, only: str | None) -> list[dict[str, str]]:
    """The artifact's runs that shall be repeated."""
    with (data / "summary.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if only in (None, row["trace"])]


def settings(data: Path, row: dict[str, str]) -> Replay:
    """The same run here."""
    nodes = 4 if row["trace"] in SMALL else 16
    allocator = ALLOCATORS.get(row["mechanism"], row["mechanism"])
    return Replay(
        str(data / f"{row['trace']}.jobs.csv"),
        f"{nodes}x{SERVER}",
        POLICIES[row["policy"]],
        allocator=allocator,
        restart_cost=0.0,
        move_cost=0.0,
    )


def table(data: Path, only: str | None, processes: int) -> list[Row]:
    """Repeat the runs."""
    theirs = asked(data, only)
    runs = grid([settings(data, row) for row in theirs], processes, progress)
    rows = []
    for row, run in zip(theirs, runs, strict=True):
        ours = summarise(run)
        assert ours["jobs"]["finished"] == int(row["jobs_finished"])
        figures = (
            float(row["avg_jct_h"]),
            ours["jct"]["mean"] / 3600,
            float(row["makespan_h"]),
            ours["makespan"] / 3600,
        )
        rows.append(Row(row["trace"], row["policy"], row["mechanism"], *figures))
    return rows


def progress(done: int, total: int | None) -> None:
    """Say how far it is, on standard error."""
    end = "\n" if done == total else "\r"
    print(f"{done} of {total} runs", end=end, file=sys.stderr, flush=True)


def plain(rows: list[Row]) -> str:
    """The table for a terminal."""
    lines = [HEADER, *[row.cells() for row in rows]]
    wide = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, wide, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(rows: list[Row]) -> str:
    """The table for a page."""
    head = ["trace", "policy", "mechanism"]
    head += ["mean JCT, artifact", "ours", "", "makespan, artifact", "ours", ""]
    lines = [head, ["---"] * 3 + ["---:"] * 6, *[row.cells() for row in rows]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Print the table; what it says on the last line is what must hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, default=DATA, help="folder of the runs")
    parser.add_argument("--only", metavar="TRACE", help="only the rows of one trace")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write it as Markdown")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if not (given.data / "summary.csv").exists():
        print(f"{given.data} has no summary.csv: give the folder with the artifact's runs.")
        return 2
    rows = table(given.data, given.only, given.processes)
    print(plain(rows))
    if given.markdown is not None:
        given.markdown.write_text(markdown(rows))
    tuned = [row for row in rows if row.mechanism == "tune"]
    worse = [row for row in tuned if _worse(row)]
    print(
        f"\ntune is no worse than the artifact's in {len(tuned) - len(worse)} of {len(tuned)} rows"
    )
    return 0


def _worse(row: Row) -> bool:
    return row.our_jct > row.their_jct or row.our_makespan > row.their_makespan


if __name__ == "__main__":
    sys.exit(main())
