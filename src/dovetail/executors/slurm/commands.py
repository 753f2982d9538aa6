"""Slurm's command line: one call, its text, and two ways in which it can go wrong.

A call that Slurm did not understand or does not allow is `Refused`: again would be the same. One
that got no answer, or none that can be read, is `Trouble`: later may be better. Knows no jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pwd import getpwuid
from tempfile import TemporaryFile
from typing import IO, Any

PATIENCE = 60.0
"""Seconds after which a command will not answer any more."""

PASSING = (
    "unable to contact",
    "connection refused",
    "connection timed out",
    "socket timed out",
    "zero bytes were transmitted",
    "temporarily unable",
    "resource temporarily unavailable",
    "communication",
    "connect failure",
    "unexpected message received",
    "node configuration",
    "munge",
)
"""What errors say that go away by themselves, in small letters."""

Owner = tuple[int, int]


class Trouble(Exception):
    """Slurm could not be asked; it may be possible later."""


class Refused(Exception):
    """Slurm said no."""


class CommandLine:
    """Calls Slurm's commands, which must be on the path."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        #: calls so far, by command
        self.calls: Counter[str] = Counter()

    def text(
        self,
        *words: str,
        given: str | None = None,
        environment: Mapping[str, str] | None = None,
        owner: Owner | None = None,
    ) -> str:
        """What a command prints; `given` is its standard input, `owner` who calls it."""
        self.calls[words[0]] += 1
        try:
            with _input(given) as source:
                done: subprocess.CompletedProcess[str] = subprocess.run(
                    words,
                    stdin=source,
                    env=None if environment is None else dict(environment),
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=self.patience,
                    **_as(owner),
                )
        except FileNotFoundError as error:
            if error.filename is None:
                raise Trouble(f"there is no place for a script: {error}") from None
            raise Refused(f"there is no command {words[0]} here") from None
        except subprocess.TimeoutExpired:
            raise Trouble(f"{words[0]} did not answer within {self.patience:g} s") from None
        except OSError as error:
            raise Trouble(f"{words[0]} could not be called: {error}") from None
        if done.returncode != 0:
            raise _complaint(words[0], done.stderr)
        return done.stdout

    def json(self, *words: str) -> dict[str, Any]:
        """What a command prints, as the object it must be."""
        try:
            found = json.loads(self.text(*words))
        except ValueError as error:
            raise Trouble(f"{words[0]} answered with something else than JSON: {error}") from None
        if not isinstance(found, dict):
            raise Trouble(f"{words[0]} answered with something else than an object")
        if errors := found.get("errors"):
            # The exit code is 0 and the list empty even when slurmctld did not answer.
            raise Trouble(f"{words[0]}: {_told(errors)}")
        return found


@contextmanager
def _input(text: str | None) -> Iterator[IO[bytes] | int]:
    """What a command reads, as a file: should we be killed, half of a script is never submitted."""
    if text is None:
        yield subprocess.DEVNULL
        return
    with TemporaryFile() as file:
        file.write(os.fsencode(text))
        file.seek(0)
        yield file


def _told(errors: Any) -> str:
    """The first of Slurm's errors, in its words."""
    first = errors[0] if isinstance(errors, list) else errors
    if not isinstance(first, dict):
        return str(first)
    return str(first.get("description") or first.get("error") or "it failed")


def _complaint(command: str, told: str) -> Exception:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    text = lines[-1] if lines else f"{command} failed without a word"
    passing = any(phrase in told.lower() for phrase in PASSING)
    return Trouble(text) if passing else Refused(text)


def _as(owner: Owner | None) -> dict[str, Any]:
    """Call as its owner, in the groups they are in."""
    if owner is None or owner[0] == os.geteuid():
        return {}
    user, group = owner
    try:
        groups = os.getgrouplist(getpwuid(user).pw_name, group)
    except KeyError:
        groups = [group]
    return {"user": user, "group": group, "extra_groups": groups}
