"""The systemd unit: what it promises about jobs, and that systemd takes it."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def parsed(text: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None, strict=True)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(text)
    return found


def test_jobs_survive_the_controller_and_it_comes_back(dovetail: Command) -> None:
    service = parsed(dovetail("unit").out)["Service"]
    assert service["KillMode"] == "process"
    assert service["Restart"] == "on-failure"
    assert service["OOMPolicy"] == "continue"
    assert service["Delegate"] == "yes"


def test_it_runs_this_program_with_the_options_given(dovetail: Command, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    found = parsed(dovetail("unit", "--data-dir", folder, "--", "--policy", "srtf:x=50%").out)
    command = found["Service"]["ExecStart"]
    assert command == (
        f'{sys.executable} -m dovetail up --data-dir "{folder}" --policy srtf:x=50%%'
    )
    assert found["Unit"]["RequiresMountsFor"] == f'"{folder}"'


def test_nothing_is_forbidden_that_a_training_needs(dovetail: Command) -> None:
    service = parsed(dovetail("unit").out)["Service"]
    harmful = {"PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock", "PrivateTmp"}
    harmful |= {"ProtectHome", "ProtectSystem", "NoNewPrivileges", "MemoryMax", "TasksMax"}
    assert harmful.isdisjoint(service)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_it(dovetail: Command, tmp_path: Path) -> None:
    file = tmp_path / "dovetail.service"
    file.write_text(dovetail("unit", "--", "--policy", "fifo").out)
    command = ["systemd-analyze", "verify", "--man=no", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Other units of the machine are looked at, too; what is said of them is not our business.
    assert [line for line in done.stderr.splitlines() if "dovetail" in line] == []
