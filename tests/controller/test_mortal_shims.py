"""Shims that are killed at each thing they do: what had not begun is begun again, the rest told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hosting import PATIENCE
from remains import remains
from sqlalchemy import select

from dovetail.controller import schema
from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller, Settings
from dovetail.controller.parts import Parts, composer
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.executors.local import Local, detect, shim
from dovetail.executors.local.run import LOST
from dovetail.model.request import gang

MORTAL = """
import os, pathlib, runpy, signal, sys
job, _, attempt = pathlib.Path(sys.argv[1]).name.partition("-")
mine, deeds = os.getpid(), []

def mortal(name):
    call = getattr(os, name)
    def done(*given, **named):
        found = call(*given, **named)
        if os.getpid() == mine and attempt == "1":
            deeds.append(name)
            if len(deeds) == int(job):
                (pathlib.Path({told!r}) / f"{{job}}-{{name}}").touch()
                os.kill(mine, signal.SIGKILL)
        return found
    setattr(os, name, done)

for name in ("chdir", "link", "unlink", "set_blocking", "fork", "replace"):
    mortal(name)
runpy.run_path({shim!r}, run_name="__main__")
"""
DEEDS = ["chdir", "link", "unlink", "set_blocking", "fork", "replace", "replace"]
"""What a shim does, in this order: it writes that nothing has begun before `set_blocking`."""
FORK = DEEDS.index("fork") + 1
AGAIN, GONE = ("done", "", 0), ("failed", LOST, 1)


def test_a_shim_may_die_at_any_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, told = tmp_path / "data", tmp_path / "told"
    told.mkdir()
    program = tmp_path / "mortal.py"
    program.write_text(MORTAL.format(told=str(told), shim=str(shim.__file__)))
    monkeypatch.setattr(shim, "__file__", str(program))
    executor = Local(data, detect(virtual=4))
    store = Store(f"sqlite:///{tmp_path / 'dovetail.db'}", durable=False)
    settings = Settings(backoff=lambda failures: 0.0)
    controller = Controller(composer(Parts(), executor), Journal(store), executor, settings)
    numbers = range(1, len(DEEDS) + 2)
    lines = [f"echo once >> {tmp_path / f'ran-{number}'}" for number in numbers]
    controller.post(Submit(tuple(Submission(("sh", "-c", line), gang(1, 100)) for line in lines)))
    deadline = time.monotonic() + PATIENCE
    controller.turn()
    while controller.roster or remains(data):
        controller.turn()
        time.sleep(0.005)
        assert time.monotonic() < deadline, "the jobs never end"
    rows = store.rows(select(schema.jobs).order_by(schema.jobs.c.id))
    ends = {row["id"]: (row["state"], row["reason"], row["failures"]) for row in rows}
    store.close()
    assert sorted(path.name for path in told.iterdir()) == [
        f"{number}-{deed}" for number, deed in enumerate(DEEDS, 1)
    ]
    ran = {number: _times(tmp_path / f"ran-{number}") for number in numbers}
    for number in numbers:
        if number < FORK or number >= len(DEEDS):
            assert (ends[number], ran[number]) == (AGAIN, 1), number
        elif number == FORK:
            # Its command may have been quick enough to begin, or not.
            assert (ends[number], ran[number]) in ((AGAIN, 1), (GONE, 0), (GONE, 1))
        else:
            assert ends[number] == GONE and ran[number] <= 1, number


def _times(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0
