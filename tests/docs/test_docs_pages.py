"""Links lead somewhere, commands exist and print what the pages show, diagrams are up to date."""

import re
import runpy
from pathlib import Path

import psutil
import pytest
from doc_support import (
    BLOCK,
    ROOT,
    Session,
    Shown,
    gist,
    name_of,
    pages,
    shown_in,
    upto,
)

from dovetail.allocators import ALLOCATORS
from dovetail.core.lifecycle import TRANSITIONS
from dovetail.metrics.summary import summarise
from dovetail.orderings import ORDERINGS
from dovetail.placements import PLACEMENTS
from dovetail.predictors import PREDICTORS
from dovetail.recipes import RECIPES
from dovetail.simulator.experiment import Replay, replay
from dovetail.traces import FORMATS
from dovetail.traces.generator import KINDS

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"""(?:!\[[^\]]*\]\(|(?:src|srcset)=")([^)"\s]+)""")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
DRAWN = ("generate:philly", "generate:gavel", "generate:poisson")
"""Workloads from numpy's generator: another version of it may draw other jobs."""


def links(page: Path) -> list[str]:
    return LINK.findall(CODE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)} links to {link}, which does not exist"
        assert target.is_relative_to(ROOT), f"{name_of(page)} links out of the project: {link}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)}: {link} has no such heading"


def test_every_picture_is_there_and_shown() -> None:
    shown = {
        (page.parent / name).resolve()
        for page in pages()
        for name in PICTURE.findall(CODE.sub("", page.read_text()))
    }
    assert shown == set((ROOT / "docs" / "images").iterdir())


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        near = ((page.parent / link.partition("#")[0]).resolve() for link in links(page))
        ahead += [target for target in near if target.suffix == ".md" and target.exists()]
    assert [name_of(page) for page in pages() if page not in reached] == []


# ---- commands --------------------------------------------------------------------------------


def test_the_commands_of_the_readme_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md", "docs/quickstart.md"):
        named = set(re.findall(r"\bmake ([\w-]+)", (ROOT / page).read_text()))
        assert named <= targets, f"{page} names targets that do not exist"
    assert {"demo", "test", "test-real"} <= targets


def test_the_readme_has_a_quick_start_with_the_three_commands() -> None:
    block = re.search(
        r"## Quick start.*?```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert block is not None
    commands = [line.partition("#")[0].strip() for line in block[1].splitlines()]
    assert commands == ["make demo", "make test", "make test-real"]


def with_commands(live: bool) -> list[Path]:
    """Pages that have such blocks."""
    return [page for page in pages() if blocks(page, live)]


def blocks(page: Path, live: bool) -> list[str]:
    found: list[tuple[str, str]] = BLOCK.findall(page.read_text())
    return [text for kind, text in found if bool(kind) == live]


@pytest.mark.parametrize("page", with_commands(live=False), ids=name_of)
def test_commands_print_what_the_page_shows(page: Path) -> None:
    with Session() as session:
        for block in blocks(page, live=False):
            for shown in shown_in(block):
                now = session.printed(shown)
                if not any(kind in shown.command for kind in DRAWN):
                    assert words(now, shown) == words(shown.lines, shown), AGAIN
                assert now, f"{shown.command} printed nothing"


@pytest.mark.real
@pytest.mark.parametrize("page", with_commands(live=True), ids=name_of)
def test_controllers_say_what_the_page_shows(page: Path) -> None:
    memory = psutil.virtual_memory()
    if memory.available < memory.total / 2:
        pytest.skip("others use so much of the memory that jobs wait for it, not for GPUs")
    with Session() as session:
        for block in blocks(page, live=True):
            for shown in shown_in(block):
                now = session.told(shown)
                assert gist(now, shown) == gist(shown.lines, shown), (AGAIN, shown.command, now)


AGAIN = "the output has changed: see CONTRIBUTING.md, 'A command', for how to write it anew"


def words(lines: list[str], shown: Shown) -> list[str]:
    """What is said, whatever the width of columns."""
    return " ".join(upto(lines, shown)).split()


def test_the_program_in_the_readme_runs() -> None:
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert program is not None
    text = program[1].replace("print(", "shown.append((").replace('["jct"])', '["jct"]))')
    shown: list[tuple[str, dict[str, float]]] = []
    exec(text, {"shown": shown})
    assert [(policy, round(jct["mean"], 1)) for policy, jct in shown] == [
        ("fifo", 14059.3),
        ("srtf", 3148.1),
    ]
    assert len([line for line in program[1].splitlines() if line]) <= 5


def agreed() -> list[tuple[str, str, str, str]]:
    """Cluster, placement, policy and mean JCT that the README gives for the 480 jobs."""
    table = (
        (ROOT / "README.md").read_text().partition("## Agreement")[2].partition("\n\nThe peers")[0]
    )
    found, workload = [], ""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4:
            continue
        workload = cells[0] or workload
        if workload == "`generate:tiresias480`":
            for policy, mean in re.findall(r"`([^`]+)` ([\d.]+)", cells[3]):
                found.append((cells[1], cells[2].strip("`"), policy, mean))
    return found


def test_the_readme_gives_five_figures_for_the_480_jobs() -> None:
    assert len(agreed()) == 5


@pytest.mark.parametrize(("cluster", "placement", "policy", "mean"), agreed())
def test_the_figures_of_the_readme_are_met(
    cluster: str, placement: str, policy: str, mean: str
) -> None:
    settings = Replay(
        "generate:tiresias480", cluster, policy, placement=placement, restart_cost=0.0
    )
    result = summarise(replay(settings))
    assert f"{result['jct']['mean']:.1f}" == mean
    assert result["jobs"]["finished"] == result["jobs"]["submitted"] == 480


# ---- lists and tables ------------------------------------------------------------------------


def test_the_readme_names_everything_there_is() -> None:
    text = (ROOT / "README.md").read_text()
    kinds = (ORDERINGS, PLACEMENTS, PREDICTORS, ALLOCATORS, FORMATS)
    names = [name for kind in kinds for name in kind.builtin]
    assert [name for name in (*names, *RECIPES, *KINDS) if f"`{name}`" not in text] == []


def test_semantics_names_every_ordering_placement_and_predictor() -> None:
    text = (ROOT / "docs" / "design" / "semantics.md").read_text()
    names = [name for kind in (ORDERINGS, PLACEMENTS, PREDICTORS) for name in kind.builtin]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_table_of_moves_is_the_one_of_the_code() -> None:
    text = (ROOT / "docs" / "design" / "job-lifecycle.md").read_text()
    table = text.partition("## Every move")[2].partition("## ")[0]
    moves = set(re.findall(r"^\| (\w+) \| (\w+) \| \S.*\|$", table, re.MULTILINE)) - {
        ("from", "to")
    }
    assert moves == {(str(a), str(b)) for a, after in TRANSITIONS.items() for b in after}


def test_the_diagram_is_drawn_from_the_table() -> None:
    drawing = runpy.run_path(str(ROOT / "docs" / "design" / "draw_lifecycle.py"))
    page = (ROOT / "docs" / "design" / "job-lifecycle.md").read_text()
    assert drawing["diagram"]() in page, "run python docs/design/draw_lifecycle.py"


def test_every_decision_is_in_the_list_and_has_its_four_parts() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text()
    for page in sorted(folder.glob("0*.md")):
        assert f"({page.name})" in listed
        headings = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences", "Alternatives"]
        assert len(page.read_text().splitlines()) < 60, f"{page.name} is longer than a page"
