"""What jobs wrote: read in pieces, so that it can be followed while it is written and rotated.

A cursor names a file by its number in the file system and a place in it. Rotation renames files,
so a cursor stays good until its file is thrown away; then reading goes on with the oldest there is.
"""

from __future__ import annotations

import os
import re
from codecs import getincrementaldecoder
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from dovetail.controller.loop import Controller
from dovetail.controller.reading import attempts
from dovetail.executors.protocol import Attempt
from dovetail.model.errors import Missing, UserError
from dovetail.model.live import Piece

MOST = 256 * 1024
"""Bytes in one piece."""

_CURSOR = re.compile(r"([0-9]{1,20}):([0-9]{1,18})")


def piece(controller: Controller, job: int, attempt: int, cursor: str, tail: int) -> Piece:
    """What comes after the cursor, or the last lines.

    Attempt 0 is the latest: then there may be more to come as long as the job has not ended.
    """
    live = controller.roster.get(job)
    latest = live.attempts if live is not None else _latest(controller, job)
    number = attempt or latest
    if number > latest:
        had = "1 attempt" if latest == 1 else f"{latest} attempts"
        named = controller.roster.called(job)
        raise Missing(f"job {named} had {had}; there is no number {attempt}")
    if not number:
        return Piece(0, "", "", live is None)
    running = live is not None and live.run is not None and live.run.attempt.number == number
    going_on = running or (live is not None and not attempt)
    files = controller.executor.logs(Attempt(job, number))
    if tail:
        text, place = last_lines(files, tail)
        return Piece(number, text, place, not going_on)
    text, place = after(files, cursor)
    return Piece(number, text, place, not text and not going_on)


def after(files: Sequence[Path], cursor: str) -> tuple[str, str]:
    """The text after a cursor, and where it ends. Files are given oldest first."""
    number, place = _read(cursor)
    # A character that is only half there is left for the next piece, or found in the next file.
    decoder = getincrementaldecoder("utf-8")("replace")
    with ExitStack() as stack:
        opened = _opened(files, stack)
        numbers = [os.fstat(file.fileno()).st_ino for file in opened]
        begin = numbers.index(number) if number in numbers else 0
        for file, here in list(zip(opened, numbers, strict=True))[begin:]:
            size = os.fstat(file.fileno()).st_size
            # A file that was thrown away may have left its number to a new one.
            file.seek(place if here == number and place <= size else 0)
            text = decoder.decode(file.read(MOST))
            cursor = f"{here}:{file.tell() - len(decoder.getstate()[0])}"
            if text:
                return text, cursor
    return "", cursor


def last_lines(files: Sequence[Path], count: int) -> tuple[str, str]:
    """The last lines of the newest files, as much as one piece holds, and where they end."""
    found, cursor = b"", ""
    with ExitStack() as stack:
        for file in reversed(_opened(files, stack)):
            status = os.fstat(file.fileno())
            file.seek(max(0, status.st_size - MOST))
            found = file.read() + found
            cursor = cursor or f"{status.st_ino}:{file.tell()}"
            if found.count(b"\n") > count or len(found) >= MOST:
                break
    lines = found[-MOST:].split(b"\n")
    wanted = count + 1 if found.endswith(b"\n") else count
    return b"\n".join(lines[-wanted:]).decode(errors="replace"), cursor


def _opened(files: Sequence[Path], stack: ExitStack) -> list[BinaryIO]:
    """All of them, oldest first: the newest is opened first, so that renaming hides none."""
    opened: dict[int, BinaryIO] = {}
    for path in reversed(files):
        with suppress(FileNotFoundError):
            file = stack.enter_context(path.open("rb"))
            opened.setdefault(os.fstat(file.fileno()).st_ino, file)
    return list(reversed(opened.values()))


def _read(cursor: str) -> tuple[int, int]:
    found = _CURSOR.fullmatch(cursor)
    if cursor and not found:
        raise UserError(f"{cursor!r} is no cursor of a log; begin without one")
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _latest(controller: Controller, job: int) -> int:
    runs = attempts(controller, job)
    return int(runs[-1]["number"]) if runs else 0
