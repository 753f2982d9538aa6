"""What `dovetail submit` sees to be wrong from where it is typed, and says when it is left."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hosting import PATIENCE, Hosted, command, surroundings

Dovetail = Callable[..., Any]


def test_what_looks_wrong_is_told_before_a_job_has_waited(
    dovetail: Dovetail, host: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(host.folder))
    asked = dovetail("submit", "--hold", "--name", "night", "--", "pyhton", "train.py")
    assert (asked.code, asked.out) == (0, "1\n")
    assert asked.err == "note: pyhton is no command here, so far\n"
    assert dovetail("submit", "--hold", "--array", 2, "--name", "many", "--", "true").err == (
        "an array of 2 jobs\n"
    )
    assert (
        dovetail("why", "night").err == "dovetail: 'night' is no job: 1 is called so; write that\n"
    )
    assert (
        dovetail("show", "many").err == "dovetail: 'many' is no job: 2 is called so; write that\n"
    )
    assert dovetail("cancel", 1).code == 0
    assert dovetail("why", 1).out == "job 1 (night) is cancelled.\n"


def test_a_job_goes_on_when_nobody_waits_for_it_any_more(host: Hosted) -> None:
    with subprocess.Popen(
        command("submit", "--wait", "--", "sleep", 60),
        env=surroundings(host.folder),
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "job 1\n"
        waiting.send_signal(signal.SIGINT)
        assert waiting.stderr.read() == "job 1 goes on; dovetail cancel 1 ends it\n"
        assert waiting.wait(PATIENCE) == 130
    with host.box() as box:
        assert box.show(1).job.ended is None
