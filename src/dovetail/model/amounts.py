"""Times, sizes and amounts as people write them: `90`, `2h30m`, `16G`, `0.5`, `high`.

Numbers pass through as they are: seconds, MiB, cores. Everything else is a sentence about what was
expected.
"""

from __future__ import annotations

import math
import re

from dovetail.model.errors import UserError

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
SIZES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024.0}
"""In MiB."""

PRIORITIES = {"low": -1.0, "normal": 0.0, "high": 1.0}
AUTO = "auto"
LONGEST = 10 * 365 * 86400.0

_DURATION = re.compile(r"(?:\d+(?:\.\d*)?[smhdw])+")
_PIECE = re.compile(r"(\d+(?:\.\d*)?)([smhdw])")
_SIZE = re.compile(r"(\d+(?:\.\d*)?)\s*([KMGT])(?:i?B)?", re.IGNORECASE)


def duration(value: float | str) -> float:
    """Seconds: `90`, `90s`, `2h30m`, `1d`."""
    seconds = _number(value)
    if seconds is None and isinstance(value, str) and _DURATION.fullmatch(value.strip()):
        pieces = _PIECE.findall(value)
        seconds = sum(float(amount) * SECONDS[unit] for amount, unit in pieces)
    if seconds is None or not 0 < seconds <= LONGEST:
        raise UserError(f"{value!r} is no length of time; write 90s, 30m, 2h30m or 1d")
    return seconds


def memory(value: float | str | None) -> int | None:
    """MiB: `512M`, `16G`, a plain number of MiB; `auto` leaves it to the policy."""
    if value is None or value == AUTO:
        return None
    size = _number(value)
    if size is None and isinstance(value, str) and (found := _SIZE.fullmatch(value.strip())):
        size = float(found[1]) * SIZES[found[2].upper()]
    if size is None or not 0 < size <= SIZES["T"] * 1024:
        raise UserError(f"{value!r} is no amount of memory; write 512M, 16G or auto")
    return math.ceil(size)


def cores(value: float | str | None) -> int | None:
    """Thousandths of cores; `auto` leaves it to the policy."""
    if value is None or value == AUTO:
        return None
    number = _number(value)
    if number is None or not 0 < number <= 100_000:
        raise UserError(f"{value!r} is no number of CPU cores; write 4, 0.5 or auto")
    return math.ceil(number * 1000)


def priority(value: float | str) -> float:
    """A number, more is sooner, or low, normal, high."""
    number = PRIORITIES.get(value) if isinstance(value, str) else None
    number = _number(value) if number is None else number
    if number is None:
        raise UserError(f"{value!r} is no priority; write low, normal, high or a number")
    return number


def indices(text: str, most: int) -> list[int]:
    """The members of an array: `10` is 0 to 9, `1-4,7` is what it says."""
    found: list[int] = []
    for piece in text.split(","):
        first, _, last = piece.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise UserError(f"{text!r} is no array; write 10, 0-9 or 1,3,5-7")
        low, high = int(first), int(last or first)
        if "," not in text and not last:
            low, high = 0, low - 1
        if high - low >= most:
            raise UserError(f"an array has at most {most} members")
        found.extend(range(low, high + 1))
    if not found or len(found) > most:
        raise UserError(f"an array has 1 to {most} members; {text!r} has {len(found)}")
    if len(set(found)) != len(found):
        raise UserError(f"{text!r} names a member twice")
    return found


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
