"""The picture of `dovetail top`: lines that fit a terminal. It draws, and asks nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import set_cell_size
from rich.text import Text

from dovetail.cli.job_tables import STYLES, array_name, places_text
from dovetail.cli.output import printable
from dovetail.model.live import About, Description, Machine
from dovetail.report.words import compact

BAR = 10
"""Cells of a bar."""
WIDE = 16
"""GPUs of a node up to which each is drawn with its job."""
MOST_NODES = 8
KEYS = "q quit · j/k move · enter details · w why · c cancel · f only mine"
BACK = "q quit · j/k scroll · esc back"


@dataclass(frozen=True)
class Picture:
    """What the controller said when it was last asked."""

    about: About
    nodes: Sequence[Machine]
    #: those that run first
    jobs: Sequence[Description]
    total: int
    at: float


@dataclass
class Screen:
    """Where the person is."""

    selected: int = 0
    mine: bool = False
    #: what is read instead of the list, and from which line on
    pane: list[str] = field(default_factory=list)
    scrolled: int = 0
    #: the job that is given up if they say yes
    asks: Description | None = None
    #: one sentence, until the next key
    said: str = ""


def drawn(picture: Picture, screen: Screen, width: int, height: int) -> Text:
    """A screen of exactly so many lines."""
    top = [_head(picture), *_machines(picture, height // 3)]
    room = max(1, height - len(top) - 2)
    body = _pane(screen, room) if screen.pane else _list(picture, screen, width, room)
    body += [Text()] * (room - len(body))
    lines = [*top, Text("─" * width, "dim"), *body, _foot(screen, width)]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Text("\n", no_wrap=True).join(lines[:height])


def _head(picture: Picture) -> Text:
    about = picture.about
    virtual = " · virtual GPUs" if about.virtual else ""
    waiting = about.jobs - about.running
    said = f"{about.running:,} running, {waiting:,} not · policy {about.policy}{virtual}"
    return Text.assemble(("dovetail", "bold"), f"  {printable(said)}")


def _machines(picture: Picture, most: int) -> list[Text]:
    """A line for each node; where they are many, one for the rest."""
    holders: dict[tuple[str, int], str] = {}
    for job in picture.jobs:
        for place in job.places:
            holders.update({(place.node, device): job.label for device in place.devices})
    most = max(1, min(most, MOST_NODES))
    shown = picture.nodes if len(picture.nodes) <= most else picture.nodes[: most - 1]
    lines = [_machine(node, holders) for node in shown]
    rest = picture.nodes[len(shown) :]
    if rest:
        free, gpus = sum(node.free for node in rest), sum(node.gpus for node in rest)
        lines.append(Text(f"… {len(rest):,} more nodes, {free:,} of {gpus:,} GPUs free", "dim"))
    return lines


def _machine(node: Machine, holders: dict[tuple[str, int], str]) -> Text:
    line = Text(f"{set_cell_size(printable(node.name), 10)} ")
    if node.state != "open":
        line.append(f"{node.state} ", "red")
    if node.gpus <= WIDE:
        for device in range(node.gpus):
            line.append_text(_device(node, device, holders))
    else:
        line.append(f"{_bar(node.gpus - node.free, node.gpus)} {node.free} of {node.gpus} free")
    for name, free, whole, unit, said in (
        ("cpu", node.cpu_free, node.cpu, 1000, ""),
        ("mem", node.memory_free, node.memory, 1024, " GiB"),
    ):
        if free is not None and whole:
            used = max(0, whole - free)
            line.append(f"  {name} ", "dim")
            line.append(f"{_bar(used, whole)} {used / unit:.3g}/{whole / unit:.3g}{said}")
    return line


def _device(node: Machine, device: int, holders: dict[tuple[str, int], str]) -> Text:
    """The number of the job on it; a dot: free, x: somebody outside, #: a job not listed."""
    job = holders.get((node.name, device))
    if job is not None:
        return Text(f"[{job[-4:]}]", "green")
    if device in node.foreign:
        return Text("[x]", "red")
    return Text("[·]" if node.free else "[#]", "dim")


def _bar(part: float, whole: float) -> str:
    full = min(BAR, round(BAR * part / whole)) if whole else 0
    return "█" * full + "░" * (BAR - full)


def _list(picture: Picture, screen: Screen, width: int, room: int) -> list[Text]:
    if not picture.jobs:
        return [Text("no job of yours" if screen.mine else "no job is waiting or running", "dim")]
    title = _columns("  job", "name", "user", "state", "GPUs", "for", "progress, or why it waits")
    rows = room - 1
    first = max(0, min(screen.selected - rows // 2, len(picture.jobs) - rows))
    lines = [Text(title, "dim")]
    for place, job in list(enumerate(picture.jobs))[first : first + rows]:
        lines.append(_row(job, picture.at, width, place == screen.selected))
    hidden = picture.total - len(picture.jobs)
    if hidden > 0 and len(lines) < room:
        lines.append(Text(f"… and {hidden:,} more", "dim"))
    return lines


def _columns(*cells: str) -> str:
    sizes = (9, 14, 8, 9, 4, 6)
    fixed = (set_cell_size(cell, size) for cell, size in zip(cells, sizes, strict=False))
    return " ".join((*fixed, cells[-1]))


def _row(job: Description, now: float, width: int, selected: bool) -> Text:
    since = job.submitted if job.started is None or job.state == "waiting" else job.started
    mark = "▸ " if selected else "  "
    line = _columns(
        mark + array_name([job]),
        printable(job.name),
        printable(job.owner),
        job.state,
        f"{job.gpus:g}",
        compact(max(0.0, now - since)),
        printable(_told(job)),
    )
    style = STYLES.get(job.state, "")
    return Text(
        set_cell_size(line, width) if selected else line,
        f"reverse {style}".strip() if selected else style,
    )


def _told(job: Description) -> str:
    told = job.progress
    if told is not None and told.total and job.places:
        left = max(0.0, told.total - told.steps) / told.rate if told.rate > 0 else None
        more = f", {compact(left)} left" if left is not None else ""
        return f"{_bar(told.steps, told.total)} {min(1.0, told.steps / told.total):.0%}{more}"
    return places_text(job.places) if job.places else job.reason


def _pane(screen: Screen, room: int) -> list[Text]:
    screen.scrolled = max(0, min(screen.scrolled, len(screen.pane) - room))
    return [Text(line) for line in screen.pane[screen.scrolled : screen.scrolled + room]]


def _foot(screen: Screen, width: int) -> Text:
    if screen.asks is not None:
        job = screen.asks
        return Text(
            printable(f"Cancel job {job.label} ({job.name})? y: yes, any other key: no"), "bold"
        )
    if screen.said:
        # The end of a long sentence says more than the path it begins with.
        said = printable(screen.said)
        return Text(said if len(said) <= width else f"…{said[1 - width :]}", "yellow")
    return Text(BACK if screen.pane else KEYS, "dim")
