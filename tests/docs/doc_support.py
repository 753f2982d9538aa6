"""The documentation as data: pages, links, and `console` blocks that can be run and refreshed.

A console block has commands (`$ …`, with `\\` at the end of a line that is continued) and what they
print. `...` alone on a line stands for the rest.
`$ cat FILE` makes the file of what is shown, unless an earlier command wrote it.
In blocks that begin with `console live` they talk to a controller, which one of them starts.

    python tests/docs/doc_support.py README.md docs/quickstart.md    # write what commands print now
"""

from __future__ import annotations

import getpass
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Self

ROOT = Path(__file__).resolve().parents[2]
DOVETAIL = [sys.executable, "-c", "from dovetail.cli import main; main()"]
VOLATILE = ("Simulated in",)
"""Lines that begin like this tell how fast the machine was."""
REST = "..."
PATIENCE = 120.0
"""Seconds in which a controller comes to say what a page shows."""

BLOCK = re.compile(r"^```console( live)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MACHINE = re.compile(
    r"(?:[\d.]+ ?(?:s|m|min|h|d)\b ?)+"  # lengths of time
    r"|(?:\d{4}-)?\d\d-\d\d \d\d:\d\d(?::\d\d)?"
    r"|[\d.]+ (?:GiB|MiB|cores?|a second)"
    r"|process \d+|[\d,]+(?= of [\d,]+ steps)|step \d+: error \S+"
)
"""What a live controller says that another machine, or the same a moment later, says otherwise."""
WORD = re.compile(r"[^\s,;:()─]+")


class Shown(NamedTuple):
    """A command of a page, as it is written there, and the lines it is said to print."""

    written: list[str]
    lines: list[str]

    @property
    def command(self) -> str:
        return " ".join(line.removesuffix("\\") for line in self.written).removeprefix("$ ")


def pages() -> list[Path]:
    """Every Markdown file of the project."""
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def shown_in(block: str) -> list[Shown]:
    found: list[Shown] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Shown([line], []))
        elif not found[-1].lines and found[-1].written[-1].endswith("\\"):
            found[-1].written.append(line)
        else:
            found[-1].lines.append(line)
    return found


class Session:
    """The commands of a page, one after the other, in a folder of their own; use it in a `with`.

    There `docs/` and `examples/` are where the pages say they are. A controller ends with it.
    """

    def __init__(self) -> None:
        self._made = tempfile.TemporaryDirectory()
        self._folder = Path(self._made.name)
        self._data = self._folder / "data"
        #: what stands on the pages in place of what is called otherwise here
        self._names = {
            str(self._data): "~/.local/share/dovetail",
            platform.node(): "vm",
            getpass.getuser(): "root",
        }

    def __enter__(self) -> Self:
        for name in ("docs", "examples"):
            (self._folder / name).symlink_to(ROOT / name)
        return self

    def __exit__(self, *_: object) -> None:
        if (self._data / "socket").exists():
            self._run(["down", "--stop-jobs"])
        self._made.cleanup()

    def printed(self, shown: Shown, live: bool = False) -> list[str]:
        """What the command prints, without what tells of the machine."""
        program, *arguments = shlex.split(shown.command)
        if program == "cat":
            file = self._folder / arguments[0]
            if not file.exists():
                file.write_text("\n".join(shown.lines) + "\n")
            return file.read_text().splitlines()
        assert Path(program).name == "dovetail", f"a console block cannot run {program}"
        done = self._run(arguments)
        # Errors are told on standard error, after the progress bar has left an empty line there.
        also = live or done.returncode
        said = done.stdout + (done.stderr.strip() + "\n" if also and done.stderr else "")
        lines = [line.rstrip() for line in said.splitlines()]
        return [line for line in lines if not line.startswith(VOLATILE)]

    def _run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        own = {"COLUMNS": "80", "DOVETAIL_DATA_DIR": str(self._data)}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            [*DOVETAIL, *arguments],
            cwd=self._folder,
            env={**os.environ, **own, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def told(self, shown: Shown, patience: float = PATIENCE) -> list[str]:
        """What a controller says: who only looks asks until it is what the page shows."""
        deadline = time.monotonic() + patience
        while True:
            said = "\n".join(self.printed(shown, live=True))
            for here, there in self._names.items():
                said = re.sub(rf"(?<![\w-]){re.escape(here)}(?![\w-])", there, said)
            lines, asks = said.splitlines(), shown.command.split()[1] in LOOKS
            if not asks or gist(lines, shown) == gist(shown.lines, shown):
                return lines
            if time.monotonic() > deadline:
                return lines
            time.sleep(0.2)


LOOKS = ("queue", "why", "when", "show", "nodes", "logs")
"""Commands that may be repeated."""


def upto(lines: list[str], shown: Shown) -> list[str]:
    """As far as the page shows it: up to where it says `...`."""
    return lines[: shown.lines.index(REST)] if REST in shown.lines else lines


def gist(lines: list[str], shown: Shown) -> Counter[str]:
    """What a controller says, whatever the machine and whoever comes first."""
    said = WORD.findall(MACHINE.sub("~", " ".join(upto(lines, shown))))
    # Who comes last has the full stop.
    return Counter(word.rstrip(".") for word in said if word != ".")


def refreshed(text: str) -> str:
    """The page with what its commands print now."""
    with Session() as session:

        def again(block: re.Match[str]) -> str:
            lines: list[str] = []
            for shown in shown_in(block[2]):
                now = session.told(shown, PATIENCE / 3) if block[1] else session.printed(shown)
                if REST in shown.lines:
                    now = [*upto(now, shown), REST]
                lines += [*shown.written, *now]
            return "\n".join([f"```console{block[1] or ''}", *lines, "```"])

        return BLOCK.sub(again, text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(refreshed(page.read_text()))
