"""The documentation as data: pages, links, and `console` blocks that can be run and refreshed.

A console block has commands (`$ …`, with `\\` at the end of a line that is continued) and what they
print. `...` alone on a line stands for the rest.
`$ cat FILE` makes the file of what is shown, unless an earlier command wrote it.

    python tests/docs/doc_support.py README.md docs/quickstart.md    # write what commands print now
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOVETAIL = [sys.executable, "-c", "from dovetail.cli import main; main()"]
VOLATILE = ("Simulated in",)
"""Lines that begin like this tell how fast the machine was."""
REST = "..."

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


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


def printed(shown: Shown, folder: Path) -> list[str]:
    """What the command prints in that folder, without what tells of the machine."""
    program, *arguments = shlex.split(shown.command)
    if program == "cat":
        file = folder / arguments[0]
        if not file.exists():
            file.write_text("\n".join(shown.lines) + "\n")
        return file.read_text().splitlines()
    assert program == ".venv/bin/dovetail", f"a console block cannot run {program}"
    done = subprocess.run(
        [*DOVETAIL, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    # Errors are told on standard error, after the progress bar has left an empty line there.
    said = done.stdout + (done.stderr.strip() + "\n" if done.returncode else "")
    lines = [line.rstrip() for line in said.splitlines()]
    return [line for line in lines if not line.startswith(VOLATILE)]


def folder_with_docs() -> tempfile.TemporaryDirectory[str]:
    """An empty folder in which `docs/` and `examples/` are where the pages say they are."""
    folder = tempfile.TemporaryDirectory()
    for name in ("docs", "examples"):
        (Path(folder.name) / name).symlink_to(ROOT / name)
    return folder


def refreshed(text: str) -> str:
    """The page with what its commands print now."""
    with folder_with_docs() as folder:

        def again(block: re.Match[str]) -> str:
            lines: list[str] = []
            for shown in shown_in(block[1]):
                now = printed(shown, Path(folder))
                if REST in shown.lines:
                    now = [*now[: shown.lines.index(REST)], REST]
                lines += [*shown.written, *now]
            return "\n".join(["```console", *lines, "```"])

        return BLOCK.sub(again, text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(refreshed(page.read_text()))
