"""Bad hardware, drawn from seeds: what HiveD makes of it, and what our own cells promise."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest
from faulty import CONFIG, Play, fingerprint
from hived import EXPLAINED, main
from hived_books import HivedCells

from dovetail.tenancy.cells.state import Cells

#: By seed: how many steps HiveD survives, and what a model of its published code makes of them. In
#: each of these its books are out of balance in the end.
TOLD = {
    25: (52, "020624bd28ad"),
    74: (51, "369e09297e41"),
    178: (52, "2364c616bd72"),
    197: (80, "3a0895adf33a"),
    242: (66, "6ca915db4b7b"),
    357: (72, "8e4b06ca9e1d"),
}


@pytest.mark.parametrize("seed", TOLD)
def test_with_hiveds_books_every_step_is_hiveds(seed: int) -> None:
    steps, told = TOLD[seed]
    assert fingerprint(list(islice(Play(seed, HivedCells).steps(), steps))) == told


@pytest.mark.parametrize("seed", TOLD)
def test_our_own_books_balance_to_the_end(seed: int) -> None:
    play = Play(seed, Cells)
    for _ in play.steps():
        play.replay.cells.validate()
    for name in list(play.live):
        list(play.end(name))
    assert not play.replay.cells.groups
    for stock in play.replay.cells.stocks.values():
        assert all(not any(leaf.used for leaf in leaves) for leaves in stock.full)


@pytest.mark.parametrize("seed", range(5))
def test_without_faults_both_keep_the_same_books(seed: int) -> None:
    own, hiveds = (list(Play(seed, kind, faults=0).steps()) for kind in (Cells, HivedCells))
    assert fingerprint(own) == fingerprint(hiveds)


def test_the_runner_fails_what_our_cells_do_not_do_and_says_if_hiveds_books_explain_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.json"
    steps = list(islice(Play(197, HivedCells).steps(), 80))
    path.write_text(json.dumps({"id": "odd", "config": CONFIG, "steps": steps}))
    assert main([str(path)]) == 1
    told = capsys.readouterr().out
    assert told.startswith("FAILED odd: step ") and EXPLAINED in told
    assert told.endswith("\n0 passed, 1 failed\n")
    steps[-1]["state"]["free"] = {}
    path.write_text(json.dumps({"id": "odd", "config": CONFIG, "steps": steps}))
    assert main([str(path)]) == 1
    assert EXPLAINED not in capsys.readouterr().out
