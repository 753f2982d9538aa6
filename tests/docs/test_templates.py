"""The templates of the guides work through the real command line, and are as short as promised."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doc_support import ROOT

GUIDES = ROOT / "docs" / "guides"
TEMPLATES = GUIDES / "templates"
WORKLOAD = ("generate:tiresias480", "--cluster", "15x4", "--json", "-")
MOST = 30


@pytest.fixture
def simulate(dovetail: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Run `dovetail simulate` and give its result."""

    def run(*options: object) -> dict[str, Any]:
        answer = dovetail("simulate", *WORKLOAD, *options)
        assert answer.code == 0, answer.err
        result: dict[str, Any] = json.loads(answer.out)
        return result

    return run


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()]


@pytest.mark.parametrize("name", ["ordering.py", "placement.py"])
def test_a_template_is_short(name: str) -> None:
    assert len(lines(TEMPLATES / name)) <= MOST


@pytest.mark.parametrize("name", ["write-an-ordering.md", "write-a-placement.md"])
def test_its_guide_is_short_too(name: str) -> None:
    assert len(lines(GUIDES / name)) <= MOST


@pytest.mark.parametrize(
    "policy", ["ordering.py:Ageing", "ordering.py:Ageing:weight=0.5", "ordering.py:LeastRun"]
)
def test_the_ordering_works_as_a_policy(simulate: Callable[..., Any], policy: str) -> None:
    result = simulate("--policy", TEMPLATES / policy)
    assert result["jobs"]["finished"] == 480


def test_ageing_makes_the_order_more_like_arrival(simulate: Callable[..., Any]) -> None:
    path = TEMPLATES / "ordering.py:Ageing"
    none = simulate("--policy", f"{path}:weight=0")
    some = simulate("--policy", f"{path}:weight=0.1")
    endless = simulate("--policy", f"{path}:weight=1e9")
    assert none["jct"] == simulate("--policy", "sjf:skip=true")["jct"]
    assert endless["jct"] == simulate("--policy", "fifo:skip=true")["jct"]
    assert none["jct"] != some["jct"] != endless["jct"]


def test_the_preemptive_ordering_preempts(simulate: Callable[..., Any]) -> None:
    assert simulate("--policy", TEMPLATES / "ordering.py:LeastRun")["preemptions"] > 0


@pytest.mark.parametrize("placement", ["placement.py:TwoEnds", "placement.py:TwoEnds:wide=8"])
@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_the_placement_works(simulate: Callable[..., Any], placement: str, policy: str) -> None:
    result = simulate("--policy", policy, "--placement", TEMPLATES / placement)
    assert result["jobs"]["finished"] == 480


def test_the_placement_keeps_wide_and_narrow_jobs_apart(dovetail: Any, tmp_path: Path) -> None:
    from dovetail.core.protocols import Ask
    from dovetail.placements import PLACEMENTS
    from dovetail.simulator.spec import parse_cluster

    place = PLACEMENTS.create(f"{TEMPLATES}/placement.py:TwoEnds").place
    cluster = parse_cluster("4x4")
    narrow, wide, wider = (place(cluster, Ask(units, 1, 0, 4)) for units in (2, 4, 6))
    assert narrow is not None and [part.node for part in narrow] == [0]
    assert wide is not None and [part.node for part in wide] == [3]
    assert wider is not None and [part.node for part in wider] == [3, 2]


@pytest.mark.parametrize(
    ("guide", "template", "option", "name"),
    [
        ("write-an-ordering.md", "ordering.py", "--policy", "Ageing"),
        ("write-a-placement.md", "placement.py", "--placement", "TwoEnds"),
    ],
)
def test_what_the_guide_shows_works(
    simulate: Callable[..., Any],
    tmp_path: Path,
    guide: str,
    template: str,
    option: str,
    name: str,
) -> None:
    shown = re.search(r"```python\n(.*?)```", (GUIDES / guide).read_text(), re.DOTALL)
    assert shown is not None
    imports = [line for line in lines(TEMPLATES / template) if line.startswith("from ")]
    file = tmp_path / template
    file.write_text("\n".join([*imports, shown[1]]))
    assert simulate(option, f"{file}:{name}")["jobs"]["finished"] == 480
