"""Tasks on the side of whoever submits them: from a command line or a YAML file to what is sent.

The directory and the environment of the submitter go with a task. What its fields mean is the
controller's business; here only what must be known to read a file is checked.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dovetail.model.errors import UserError

LEFT_OUT = frozenset({"DOVETAIL_TOKEN", "DOVETAIL_URL", "_", "SHLVL", "OLDPWD", "LS_COLORS"})
"""Variables that mean nothing to a job, or that it must not have."""


def captured(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment that goes with a task."""
    return {name: text for name, text in environment.items() if name not in LEFT_OUT}


def task(command: Sequence[str], **fields: Any) -> dict[str, Any]:
    """A task from a command and what was said about it; what is None was not said."""
    given = {name: value for name, value in fields.items() if value is not None}
    extra = given.pop("environment", {})
    return {
        "command": list(command),
        "directory": os.getcwd(),
        **given,
        "environment": {**captured(), **extra},
    }


def read(path: Path) -> dict[str, Any]:
    """A task file: YAML with the fields of a task, and `run:` for a script."""
    import yaml  # noqa: PLC0415 (only few commands read one)

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is no text file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "no YAML"
        raise UserError(f"{path}{line}: {problem}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise UserError(f"{path}: a task is a list of 'field: value' lines")
    return _task(path, dict(found))


def _task(path: Path, found: dict[str, Any]) -> dict[str, Any]:
    command, script = found.pop("command", None), found.pop("run", None)
    if (command is None) == (script is None):
        raise UserError(f"{path}: give either 'command:' (one command) or 'run:' (a script)")
    if script is not None:
        command = ["bash", "-ec", str(script)]
    elif isinstance(command, str):
        command = _words(path, command)
    if not isinstance(command, list) or not command:
        raise UserError(f"{path}: 'command:' is a line of text or a list of words")
    for field in ("environment", "secrets"):
        found[field] = _variables(path, field, found.get(field) or {})
    if "directory" in found:
        found["directory"] = str((path.parent / str(found["directory"])).resolve())
    return task([str(word) for word in command], **found)


def _variables(path: Path, field: str, given: Any) -> dict[str, str]:
    if not isinstance(given, dict):
        raise UserError(f"{path}: '{field}:' is a list of 'NAME: value' lines")
    return {str(name): str(value) for name, value in given.items()}


def _words(path: Path, line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UserError(f"{path}: 'command:' cannot be split into words ({error})") from None
