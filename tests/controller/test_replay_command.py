"""`dovetail replay` decides again from what the data base alone says, beside its owner."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from staging import Stage

from dovetail.controller import schema
from dovetail.controller.store import Store
from dovetail.model.errors import UserError

Command = Callable[..., Any]


@pytest.fixture
def busy(stage: Stage) -> Stage:
    """Some jobs came, ran and waited."""
    for gpus, length in ((4, 3.0), (2, 5.0), (2, 2.0), (1, 4.0)):
        stage.submit(gpus, length)
    stage.until(12.0)
    return stage


def test_all_decisions_are_the_same_while_the_controller_runs(
    busy: Stage, tmp_path: Path, dovetail: Command
) -> None:
    count = busy.controller.journal.sequence
    answer = dovetail("replay", "--data-dir", tmp_path)
    assert (answer.code, answer.out) == (0, f"{count} decisions replayed, all the same\n")
    busy.submit(1, 1.0)
    busy.until(20.0)
    assert busy.controller.journal.sequence > count


def test_replays_begin_where_another_policy_took_over(
    busy: Stage, tmp_path: Path, dovetail: Command
) -> None:
    before = busy.controller.journal.sequence
    busy.site.parts = Stage.parts("sjf")
    del busy.site.make
    busy.restart()
    busy.submit(2, 3.0)
    busy.until(30.0)
    answer = dovetail("replay", "--data-dir", tmp_path, "--json")
    count = busy.controller.journal.sequence - before
    assert json.loads(answer.out) == {"batches": count, "divergence": None}


def test_the_first_difference_is_told_in_words(
    busy: Stage, tmp_path: Path, dovetail: Command
) -> None:
    store = busy.controller.journal.store
    plans = store.rows(select(schema.plans).order_by(schema.plans.c.sequence))
    first = next(row for row in plans if "tart" in row["actions"])
    nothing = update(schema.plans).where(schema.plans.c.sequence == first["sequence"])
    with store.transaction():
        store.run(nothing.values(actions="[]"))
    answer = dovetail("replay", "--data-dir", tmp_path)
    assert answer.code == 1
    assert answer.out.startswith(f"batch {first['sequence']} (second 0): start of job 1 on node 0")
    assert answer.out.endswith("is decided now and was not then\n")


def test_the_machines_are_those_of_the_journal(busy: Stage, tmp_path: Path) -> None:
    noted = json.loads(busy.controller.journal.store.noted("machines") or "")
    assert [node["gpus"] for node in noted["nodes"]] == [4]


def test_a_folder_without_a_journal_is_refused(tmp_path: Path, dovetail: Command) -> None:
    answer = dovetail("replay", "--data-dir", tmp_path / "nowhere")
    assert answer.code == 2
    assert "there is no data base of a controller" in answer.err
    assert not (tmp_path / "nowhere").exists()


def test_who_reads_cannot_write(busy: Stage, tmp_path: Path) -> None:
    store = Store(busy.site.url, reading=True)
    try:
        with pytest.raises(UserError, match="may not be written"), store.transaction():
            store.note({"parts": "none"})
    finally:
        store.close()


def test_a_data_base_that_does_not_say_what_decided_is_refused(
    tmp_path: Path, dovetail: Command
) -> None:
    Store(f"sqlite:///{tmp_path / 'dovetail.db'}").close()
    answer = dovetail("replay", "--data-dir", tmp_path)
    assert answer.code == 2
    assert "does not say what decided" in answer.err
