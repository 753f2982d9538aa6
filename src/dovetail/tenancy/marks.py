"""Where things stand in a TOML text: the lines of array tables, of their keys and inline tables.

The parser of the standard library keeps no positions, and errors should name a line. This looks
for headers, keys and braces at the beginning of what they hold; it does not read values. Where it
finds nothing, it names the nearest line it knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

HEADER = re.compile(r"\s*\[")
KEY = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*=""")
#: strings and comments, in which braces and keys mean nothing
QUIET = re.compile(r"""\"(?:\\.|[^"\\])*\"|'[^']*'|#.*""")


@dataclass
class Marks:
    """The lines of one table; `parts` are those of the tables in its first list of tables."""

    line: int
    keys: dict[str, int] = field(default_factory=dict)
    parts: list[Marks] = field(default_factory=list)

    def of(self, key: str) -> int:
        """The line of a key."""
        return self.keys.get(key, self.line)

    def part(self, index: int, key: str) -> Marks:
        """The lines of a table in the list under a key."""
        return self.parts[index] if index < len(self.parts) else Marks(self.of(key))


def marks_of(text: str, name: str) -> list[Marks]:
    """The lines of each `[[name]]`, in order."""
    header = re.compile(rf"\s*\[\[\s*{name}\s*\]\]")
    found: list[Marks] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if header.match(line):
            inside = True
            found.append(Marks(number))
        elif HEADER.match(line) and not line.startswith((" ", "\t")):
            inside = False
        elif inside:
            _note(found[-1], number, QUIET.sub("", line))
    return found


def _note(marks: Marks, number: int, line: str) -> None:
    """Take in one line of a table: keys of its own, and inline tables with theirs."""
    outside, *tables = line.split("{")
    if key := KEY.match(outside):
        marks.keys.setdefault(key[1], number)
    for table in tables:
        marks.parts.append(Marks(number, dict.fromkeys(_keys(table), number)))


def _keys(table: str) -> Iterator[str]:
    return (found[1] for part in table.split(",") if (found := KEY.match(part)))
