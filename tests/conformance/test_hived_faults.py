"""Bad hardware, drawn from seeds: what HiveD makes of it, and what our own cells promise."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path

import pytest
from faulty import RACKS, ROWS, Play, Shape, fingerprint
from hived import Json, Replay, main
from hived_books import HivedCells

from dovetail.tenancy.cells.state import Cells

#: How many steps HiveD survives, and what a model of its published code makes of them. In each of
#: these its books are out of balance in the end.
TOLD = [
    (RACKS, 25, 52, "020624bd28ad"),
    (RACKS, 74, 51, "369e09297e41"),
    (RACKS, 178, 52, "2364c616bd72"),
    (RACKS, 197, 80, "3a0895adf33a"),
    (RACKS, 242, 66, "6ca915db4b7b"),
    (RACKS, 357, 72, "8e4b06ca9e1d"),
    (ROWS, 13, 89, "d1cc489b7123"),
    (ROWS, 21, 75, "45cd497c8398"),
    (ROWS, 127, 82, "d12c1b2391ad"),
]


def hiveds(shape: Shape, seed: int, steps: int) -> list[Json]:
    return list(islice(Play(seed, HivedCells, shape=shape).steps(), steps))


def replay(path: Path, config: Json, steps: list[Json]) -> int:
    path.write_text(json.dumps({"id": "odd", "config": config, "steps": steps}))
    return main([str(path)])


@pytest.mark.parametrize(("shape", "seed", "steps", "told"), TOLD)
def test_with_hiveds_books_every_step_is_hiveds(
    shape: Shape, seed: int, steps: int, told: str
) -> None:
    assert fingerprint(hiveds(shape, seed, steps)) == told


@pytest.mark.parametrize(("shape", "seed", "steps", "told"), TOLD)
def test_our_own_books_balance_to_the_end(shape: Shape, seed: int, steps: int, told: str) -> None:
    play = Play(seed, Cells, shape=shape)
    for _ in play.steps():
        play.replay.cells.validate()
    for name in list(play.live):
        list(play.end(name))
    assert not play.replay.cells.groups
    for stock in play.replay.cells.stocks.values():
        assert all(not any(leaf.used for leaf in leaves) for leaves in stock.full)


@pytest.mark.parametrize("shape", [RACKS, ROWS])
@pytest.mark.parametrize("seed", range(5))
def test_without_faults_both_keep_the_same_books(seed: int, shape: Shape) -> None:
    own, both = (list(Play(seed, kind, 0, shape).steps()) for kind in (Cells, HivedCells))
    assert fingerprint(own) == fingerprint(both)


@pytest.mark.parametrize(("shape", "seed", "steps", "told"), TOLD)
def test_ours_differ_only_where_hiveds_books_are_broken_and_the_runner_says_where(
    shape: Shape,
    seed: int,
    steps: int,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert replay(tmp_path / "odd.json", shape.config, hiveds(shape, seed, steps)) == 0
    line, last = capsys.readouterr().out.splitlines()
    said = re.fullmatch(
        rf"passed odd: {steps} steps, from step (\d+) on only with HiveD's books; "
        r"they break at step (\d+): .+",
        line,
    )
    assert said is not None, line
    assert int(said[1]) >= int(said[2])
    assert last == "1 passed, 0 failed"


def test_what_hiveds_books_do_not_explain_is_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, steps = tmp_path / "odd.json", hiveds(RACKS, 197, 80)
    steps[-1]["state"]["free"] = {}
    assert replay(path, RACKS.config, steps) == 1
    line, last = capsys.readouterr().out.splitlines()
    assert line.startswith("FAILED odd: step ") and "books" not in line
    assert last == "0 passed, 1 failed"


def test_who_differs_while_hiveds_books_balance_has_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list(Play(1, Cells, faults=0).steps())
    bound = next(n for n, step in enumerate(steps) if step["result"]["outcome"] == "bind")
    # Our own cells say something else, at a step that HiveD's books go through as recorded.
    said = Replay.step

    def other(self: Replay, step: Json) -> Json:
        answer = said(self, step)
        return {"outcome": "wait"} if self.kind is Cells and "node" in answer else answer

    monkeypatch.setattr(Replay, "step", other)
    assert replay(tmp_path / "odd.json", RACKS.config, steps) == 1
    assert capsys.readouterr().out.startswith(f"FAILED odd: step {bound + 1} (schedule ")
