"""Draws the table of `dovetail.core.lifecycle` as a Mermaid diagram, into `job-lifecycle.md`.

python docs/design/draw_lifecycle.py
"""

import re
from pathlib import Path

from dovetail.core.lifecycle import FINAL, PASSING, TRANSITIONS

PAGE = Path(__file__).with_name("job-lifecycle.md")
BLOCK = re.compile(r"```mermaid\n.*?```", re.DOTALL)


def diagram() -> str:
    """The diagram, states in the order of the table."""
    lines = ["stateDiagram-v2", "    direction LR", "    [*] --> waiting"]
    rank = list(TRANSITIONS)
    for state, after in TRANSITIONS.items():
        lines += [f"    {state} --> {other}" for other in sorted(after, key=rank.index)]
    lines += [f"    {state} --> [*]" for state in rank if state in FINAL]
    lines += ["    classDef passing stroke-dasharray: 4 3"]
    lines += [f"    class {', '.join(state for state in rank if state in PASSING)} passing"]
    return "\n".join(["```mermaid", *lines, "```"])


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(diagram(), PAGE.read_text()))
