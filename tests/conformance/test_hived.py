"""Our cells against what HiveD did: every recorded step, and what the runner says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).with_name("hived.py")
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "hived"

CONFIG = {
    "physicalCluster": {
        "cellTypes": {
            "PAIR": {"childCellType": "GPU", "childCellNumber": 2},
            "NODE": {"childCellType": "PAIR", "childCellNumber": 2, "isNodeLevel": True},
        },
        "physicalCells": [{"cellType": "NODE", "cellAddress": "n0"}],
    },
    "virtualClusters": {"A": {"virtualCells": [{"cellType": "NODE.PAIR", "cellNumber": 2}]}},
}
SPEC = {
    "virtualCluster": "A",
    "priority": 0,
    "leafCellNumber": 2,
    "affinityGroup": {"name": "g", "members": [{"podNumber": 1, "leafCellNumber": 2}]},
}


def replay(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUNNER), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.shared
def test_every_recorded_scenario_passes() -> None:
    if not DATA.is_dir():
        pytest.skip("the recorded scenarios are not beside the project (../shared/data/hived)")
    run = replay(*sorted(DATA.glob("*.json")), *sorted(DATA.glob("*.jsonl.gz")))
    assert run.stdout.splitlines()[-1] == "68 passed, 0 failed", run.stdout + run.stderr
    assert run.returncode == 0
    assert len(run.stdout.splitlines()) == 69


def scenario(node: str, free: list[str]) -> dict[str, object]:
    gang = [[node, [0, 1], ["PAIR"]]]
    result = {"outcome": "bind", "node": node, "leafCells": [0, 1], "chain": "NODE", "gang": gang}
    state = {
        "groups": {"g": ["Allocated", False, {node: [0, 1]}]},
        "vc": {"A": {"NODE@PAIR": [2, 1, 0]}},
        "free": {"NODE": {"PAIR": free}},
    }
    ask = {"op": "schedule", "pod": "p", "spec": SPEC, "phase": "Preempting"}
    return {"id": "small", "config": CONFIG, "steps": [{**ask, "result": result, "state": state}]}


@pytest.mark.parametrize(
    ("node", "free", "line"),
    [
        ("n0", ["n0/1"], "passed small: 1 steps"),
        ("n1", ["n0/1"], "FAILED small: step 1 (schedule p): node is n0, recorded was n1"),
        ("n0", ["n0/0"], "FAILED small: step 1 (schedule p): state free NODE PAIR is ['n0/1'],"),
    ],
)
def test_the_runner_names_the_step_that_went_differently(
    tmp_path: Path, node: str, free: list[str], line: str
) -> None:
    path = tmp_path / "small.jsonl"
    path.write_text(json.dumps(scenario(node, free)) + "\n")
    run = replay(path)
    lines = run.stdout.splitlines()
    assert lines[0].startswith(line)
    passed = line.startswith("passed")
    assert lines[1] == ("1 passed, 0 failed" if passed else "0 passed, 1 failed")
    assert run.returncode == (0 if passed else 1)


def test_a_cluster_that_should_be_refused_must_be(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    path.write_text(json.dumps({**scenario("n0", ["n0/1"]), "initOutcome": "refused"}) + "\n")
    assert "FAILED small: was not refused at start" in replay(path).stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "FAILED wrong.json: holds no scenario"),
        ("{", "FAILED wrong.json: not a scenario: JSONDecodeError Expecting property name"),
        ("[1]", "FAILED wrong.json: not a scenario: AttributeError"),
        ('{"id": "x", "steps": []}', "FAILED x: not a scenario: KeyError 'config'"),
        (
            json.dumps({"config": CONFIG, "steps": [{"op": "dance", "result": {}, "state": {}}]}),
            "FAILED wrong.json 1: step 1 (dance): the runner does not know 'dance'",
        ),
    ],
)
def test_a_file_that_is_no_scenario_is_one_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(content)
    run = replay(path, tmp_path / "nowhere.jsonl")
    first, second, last = run.stdout.splitlines()
    assert first.startswith(said)
    assert second == "FAILED nowhere.jsonl: cannot be read (No such file or directory)"
    assert (last, run.stderr, run.returncode) == ("0 passed, 2 failed", "", 1)


def test_without_files_it_says_how_to_call_it() -> None:
    run = replay()
    assert (run.stdout, run.returncode) == ("", 2)
    assert run.stderr.startswith("usage: python tests/conformance/hived.py FILE")
