"""What `dovetail submit` sees to be wrong from where it is typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hosting import Hosted

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
