"""What jobs wrote: read in pieces, so that it can be followed while it is written and rotated.

A cursor names a file by its number in the file system and a place in it. Rotation renames files,
so a cursor stays good until its file is thrown away; then reading goes on with the oldest there is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dovetail.controller.loop import Controller
from dovetail.controller.reading import attempts
from dovetail.executors.protocol import Attempt
from dovetail.model.errors import UserError
from dovetail.model.live import Piece

MOST = 256 * 1024
"""Bytes in one piece."""


def piece(controller: Controller, job: int, attempt: int, cursor: str, tail: int) -> Piece:
    """What comes after the cursor, or the last lines; attempt 0 is the latest."""
    live = controller.roster.get(job)
    latest = live.attempts if live is not None else _latest(controller, job)
    number = attempt or latest
    if not 1 <= number <= latest:
        if attempt:
            raise UserError(f"job {job} had {latest} attempts; there is no number {attempt}")
        return Piece(0, "", "", live is None)
    files = controller.executor.logs(Attempt(job, number))
    running = live is not None and live.run is not None and live.run.attempt.number == number
    if tail:
        return Piece(number, last_lines(files, tail), _end(files), not running)
    text, place = after(files, cursor)
    return Piece(number, text, place, not running and place == _end(files))


def after(files: Sequence[Path], cursor: str) -> tuple[str, str]:
    """The text after a cursor, and where it ends. Files are given oldest first."""
    inode, position = _read(cursor)
    known = [_inode(path) for path in files]
    begin = known.index(inode) if inode in known else 0
    place = position if inode in known else 0
    for path in files[begin:]:
        with open(path, "rb") as file:
            file.seek(place)
            found = file.read(MOST)
            here = f"{os.fstat(file.fileno()).st_ino}:{place + len(found)}"
        if found:
            whole = _whole(found)
            return whole.decode(errors="replace"), _moved(here, len(whole) - len(found))
        cursor, place = here, 0
    return "", cursor


def last_lines(files: Sequence[Path], count: int) -> str:
    """The last lines of the newest files, as much as one piece holds."""
    found = b""
    for path in reversed(files):
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MOST))
            found = file.read() + found
        if found.count(b"\n") > count or len(found) >= MOST:
            break
    lines = found[-MOST:].decode(errors="replace").splitlines(keepends=True)
    return "".join(lines[-count:])


def _whole(found: bytes) -> bytes:
    """Without a character that is only half there."""
    for back in range(1, min(4, len(found)) + 1):
        if found[-back] & 0xC0 == 0xC0:
            return found[:-back] if _width(found[-back]) > back and len(found) > back else found
    return found


def _width(first: int) -> int:
    return 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2


def _moved(cursor: str, by: int) -> str:
    inode, position = _read(cursor)
    return f"{inode}:{position + by}"


def _end(files: Sequence[Path]) -> str:
    if not files:
        return ""
    status = files[-1].stat()
    return f"{status.st_ino}:{status.st_size}"


def _read(cursor: str) -> tuple[int, int]:
    first, _, second = cursor.partition(":")
    if not cursor:
        return 0, 0
    if not first.isdecimal() or not second.isdecimal() or len(cursor) > 60:
        raise UserError(f"{cursor!r} is no cursor of a log; begin without one")
    return int(first), int(second)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return -1


def _latest(controller: Controller, job: int) -> int:
    runs = attempts(controller, job)
    return int(runs[-1]["number"]) if runs else 0
