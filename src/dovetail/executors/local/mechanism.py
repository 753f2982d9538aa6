"""What one way of fencing processes in can do; there are three, and machines have some of them.

A key names the processes of one attempt. Amounts are thousandths of a core and MiB. A mechanism is
asked only for what it says it can do, and an `OSError` means that it was not done.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol


class Ability(Enum):
    """One thing that can be done to the processes of an attempt."""

    #: keep them on some cores
    CORES = "cores"
    #: keep them to a part of a core
    QUOTA = "quota"
    #: keep them to an amount of memory, and tell what they use and whether it was too much
    MEMORY = "memory"
    FREEZE = "freeze"
    #: find all of them, and end them
    MEMBERS = "members"
    #: tell how much processor time they had
    CPU_TIME = "cpu time"


class Limits(NamedTuple):
    """What an attempt may use."""

    cores: tuple[int, ...]
    #: thousandths of a core; 0: not limited
    cpu: int = 0
    #: MiB; 0: not limited
    memory: int = 0


class Mechanism(Protocol):
    """One way of fencing processes in."""

    name: str
    abilities: frozenset[Ability]

    def make(self, key: str) -> list[str]:
        """Prepare; the files a process writes its number into to come under it."""

    def pin(self, key: str, cores: Sequence[int]) -> None:
        """Keep to these cores."""

    def quota(self, key: str, cpu: int) -> None:
        """Keep to this much of all cores together."""

    def limit(self, key: str, memory: int) -> None:
        """Keep to this much memory."""

    def freeze(self, key: str) -> None:
        """Stop all processes where they are."""

    def thaw(self, key: str) -> None:
        """Let them go on."""

    def frozen(self, key: str) -> bool:
        """Do all of them stand still?"""

    def members(self, key: str) -> list[int]:
        """The processes."""

    def kill(self, key: str) -> None:
        """End all of them; call again until there are no members."""

    def cpu_seconds(self, key: str) -> float:
        """Processor time used so far."""

    def memory(self, key: str) -> int:
        """Bytes used now, without what the system could take back at once."""

    def exceeded(self, key: str) -> bool:
        """Was the memory limit passed?"""

    def remove(self, key: str) -> bool:
        """Clear up; False: something is still in there."""


def read(path: Path) -> str:
    """A small file of the kernel's; empty where there is none."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def counted(path: Path, name: str) -> int:
    """A number from lines of `name number`; 0 where it is not said."""
    for line in read(path).splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name:
            return int(words[1])
    return 0


def write(path: Path, value: object) -> None:
    """Tell the kernel, in one call."""
    with path.open("w") as file:
        file.write(str(value))


def listed(cores: Sequence[int]) -> str:
    """Cores as the kernel takes them."""
    return ",".join(map(str, cores))
