"""The simulate command and its neighbours, as people use them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEADER = "job_id,submit_time,gpus,duration"
TRACE = f"{HEADER},tenant,cpus\na,0,4,10,red,4\nb,1,2,5,blue,\nc,2,0,3,red,2\nd,3,99,3,blue,\n"

KEYS = {
    "schema": str,
    "trace": str,
    "cluster": str,
    "policy": str,
    "placement": str,
    "allocator": str,
    "predictor": str,
    "costs": dict,
    "seed": int,
    "makespan": (int, float),
    "preemptions": int,
    "moves": int,
    "events": int,
    "wall_seconds": float,
    "cpu_seconds": float,
    "peak_memory_mib": (int, float),
    "tenants": dict,
}
COUNTS = ("submitted", "finished", "failed", "rejected", "cancelled", "running", "waiting")
FIGURES = ("mean", "median", "p95", "p99")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Four jobs: two plain ones, one without GPUs, one that is too large."""
    (tmp_path / "jobs.csv").write_text(TRACE)
    monkeypatch.chdir(tmp_path)
    return "jobs.csv"


def table(file: str) -> dict[str, dict[str, str]]:
    """The rows of a jobs file, by job."""
    return {row["job_id"]: row for row in csv.DictReader(Path(file).read_text().splitlines())}


def result_of(answer: Any) -> dict[str, Any]:
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def test_quotas_are_kept_and_named_in_the_result(dovetail: Callable[..., Any], trace: str) -> None:
    run = ("simulate", trace, "--cluster", "2x4", "--restart-cost", "0", "--json", "-")
    free, capped = result_of(dovetail(*run)), result_of(dovetail(*run, "--quotas", "group:red=3"))
    assert free["jobs"]["rejected"] == 1
    assert (capped["jobs"]["rejected"], capped["options"]["quotas"]) == (2, "group:red=3")
    assert (
        "asks for 4 GPUs with 4 cores; the quota of group red is 3 GPUs at one time"
        in (capped["rejections"])
    )


# ---- the result --------------------------------------------------------------------------------


def test_the_result_has_every_key_of_the_design(trace: str, dovetail: Callable[..., Any]) -> None:
    result = result_of(dovetail("simulate", trace, "--cluster", "2x4,cpus=8,mem=8", "--json", "-"))
    for key, kind in KEYS.items():
        assert isinstance(result[key], kind), key
    assert tuple(result["jobs"]) == COUNTS
    for times in ("jct", "wait"):
        assert set(FIGURES) <= set(result[times])
        assert all(isinstance(result[times][figure], float) for figure in FIGURES)
    assert set(result["utilisation"]) == {"gpu", "cpu", "memory"}
    for tenant in ("red", "blue"):
        assert {"jobs", "mean_jct", "mean_wait"} <= set(result["tenants"][tenant])
    assert result["schema"] == "dovetail/result/1"
    assert (result["placement"], result["allocator"]) == ("best-fit", "proportional")
    assert (result["predictor"], result["seed"]) == ("oracle", 0)
    assert result["costs"]["restart"] == 30.0


def test_the_figures_are_those_of_a_run_by_hand(trace: str, dovetail: Callable[..., Any]) -> None:
    # On one node: a 0-10, b waits for it and takes 10-15, c needs no GPU and takes 2-5 at once.
    simulate = ("simulate", trace, "--cluster", "1x4,cpus=8", "--policy", "fifo:skip=true")
    result = result_of(dovetail(*simulate, "--json", "-"))
    assert result["jobs"]["finished"] == 3
    assert result["jct"]["mean"] == pytest.approx((10 + 14 + 3) / 3)
    assert result["wait"]["mean"] == pytest.approx((0 + 9 + 0) / 3)
    assert result["makespan"] == 15
    assert result["utilisation"]["gpu"] == pytest.approx((4 * 10 + 2 * 5) / (4 * 15))
    assert result["tenants"]["blue"]["mean_wait"] == 9.0


def test_a_job_that_can_never_fit_is_rejected_and_counted(
    trace: str, dovetail: Callable[..., Any]
) -> None:
    result = result_of(dovetail("simulate", trace, "--cluster", "2x4", "--json", "-"))
    assert result["jobs"]["rejected"] == 1
    assert result["rejections"] == {"asks for 99 GPUs; the cluster has 8 GPUs": 1}
    counts = dict(result["jobs"])
    assert counts.pop("submitted") == sum(counts.values()) == 4


def test_a_job_without_gpus_is_scheduled(trace: str, dovetail: Callable[..., Any]) -> None:
    dovetail("simulate", trace, "--cluster", "1x4,cpus=8", "--jobs", "out.csv")
    rows = table("out.csv")
    assert rows["c"]["outcome"] == "finished"
    assert len(rows) == 4


def test_an_unsorted_file_is_sorted_with_a_notice(
    tmp_path: Path, dovetail: Callable[..., Any]
) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(f"{HEADER}\nlate,9,1,5\nearly,0,1,5\n")
    answer = dovetail("simulate", file, "--cluster", "1x1", "--json", "-")
    result = result_of(answer)
    assert result["jct"]["mean"] == 5.0
    assert any("sorted" in notice for notice in result["notices"])
    assert "sorted" in " ".join(answer.err.split())


def test_standard_output_holds_nothing_but_the_json(
    trace: str, dovetail: Callable[..., Any]
) -> None:
    answer = dovetail("simulate", trace, "--cluster", "2x4", "--json", "-")
    json.loads(answer.out)
    assert "fifo" in answer.err


@pytest.mark.parametrize("policy", ["fifo", "las:thresholds=3250/7200", "deadline", "drf"])
def test_what_is_printed_fits_80_columns(
    policy: str, trace: str, dovetail: Callable[..., Any]
) -> None:
    answer = dovetail("simulate", trace, "--cluster", "2x4,cpus=8,mem=8", "--policy", policy)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80


def test_all_three_files_can_be_written_at_once(trace: str, dovetail: Callable[..., Any]) -> None:
    files = ("--json", "r.json", "--jobs", "j.csv.gz", "--html", "h.html")
    answer = dovetail("simulate", trace, "--cluster", "2x4", *files)
    assert answer.code == 0
    assert json.loads(Path("r.json").read_text())["jobs"]["submitted"] == 4
    assert Path("j.csv.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert Path("h.html").read_text().lstrip().lower().startswith("<!doctype html")


def test_the_same_seed_gives_the_same_result(dovetail: Callable[..., Any]) -> None:
    def once(seed: int) -> dict[str, Any]:
        trace = "generate:poisson,jobs=200,load=0.9,seed=1"
        random = ("--placement", "random", "--predictor", "noisy", "--faults", "job=0.1,retries=3")
        asked = ("--cluster", "4x4", "--policy", "sjf", "--seed", seed, *random)
        result = result_of(dovetail("simulate", trace, *asked, "--json", "-"))
        return {key: result[key] for key in ("jobs", "jct", "wait", "makespan", "events")}

    assert once(3) == once(3)
    assert once(3) != once(4)


# ---- policies of one's own ---------------------------------------------------------------------

MINE = '''
"""Last come, first served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.core.ordering import Ordering


@dataclass(frozen=True)
class LastFirst(Ordering):
    """Newest first."""

    bonus: float = 1.0
    rekeys: ClassVar[str] = "none"

    def key(self, job, view):
        return -job.spec.submit * self.bonus


class Plain(Ordering):
    """Needs no decorator."""

    def key(self, job, view):
        return -job.spec.submit
'''


@pytest.mark.parametrize("name", ["LastFirst", "Plain", "LastFirst:bonus=2,skip=true"])
def test_a_policy_in_a_local_file_needs_no_installation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dovetail: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("last_first.py").write_text(MINE)
    Path("jobs.csv").write_text(f"{HEADER}\na,0,1,5\nb,1,1,5\nc,2,1,5\n")
    simulate = ("simulate", "jobs.csv", "--cluster", "1x1", "--policy", f"last_first.py:{name}")
    assert dovetail(*simulate, "--jobs", "out.csv").code == 0
    starts = {name: float(row["first_start"]) for name, row in table("out.csv").items()}
    assert starts == {"a": 0.0, "c": 5.0, "b": 10.0}


def test_a_placement_in_a_local_file_works_too(trace: str, dovetail: Callable[..., Any]) -> None:
    Path("where.py").write_text(
        "from dovetail.placements.fits import Count\nclass Mine(Count):\n    '''Mine.'''\n"
    )
    answer = dovetail("simulate", trace, "--cluster", "2x4", "--placement", "where.py:Mine")
    assert answer.code == 0


def test_two_local_files_of_one_name_do_not_get_mixed_up(
    tmp_path: Path, dovetail: Callable[..., Any]
) -> None:
    (tmp_path / "jobs.csv").write_text(f"{HEADER}\na,0,1,5\nb,1,1,9\nc,2,1,5\n")
    found = []
    for folder, sign, more in (("one", "", ""), ("two", "-", "from typing import ClassVar\n")):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "mine.py"
        file.write_text(
            f"from __future__ import annotations\n{more}"
            "from dataclasses import dataclass\n"
            "from dovetail.core.ordering import Ordering\n"
            "@dataclass(frozen=True)\nclass Mine(Ordering):\n    factor: float = 1.0\n"
            f"{'    rekeys: ClassVar[str] = ' + repr('none') if more else ''}\n"
            f"    def key(self, job, view):\n        return {sign}job.spec.submit * self.factor\n"
        )
        asked = ("--cluster", "1x1", "--policy", f"{file}:Mine", "--json", "-")
        found.append(result_of(dovetail("simulate", tmp_path / "jobs.csv", *asked))["jct"]["mean"])
    assert found == [pytest.approx((5 + 13 + 17) / 3), pytest.approx((5 + 8 + 18) / 3)]


# ---- the other commands ------------------------------------------------------------------------


def test_policies_lists_everything_that_can_be_typed(dovetail: Callable[..., Any]) -> None:
    from dovetail.orderings import BUILTIN as ORDERINGS
    from dovetail.placements import BUILTIN as PLACEMENTS
    from dovetail.recipes import RECIPES

    answer = dovetail("policies")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    for name in (*ORDERINGS, *PLACEMENTS, *RECIPES):
        assert name in answer.out
    listed = result_of(dovetail("policies", "--json", "-"))
    assert set(listed["orderings"]) == set(ORDERINGS)
    assert listed["orderings"]["las"]["parameters"]["round"] == 300.0


def test_compare_shows_policies_side_by_side(trace: str, dovetail: Callable[..., Any]) -> None:
    asked = ("--cluster", "1x4", "--policies", "fifo,srtf", "--processes", "1", "--json", "-")
    result = result_of(dovetail("compare", trace, *asked))
    assert set(result["policies"]) == {"fifo", "srtf"}
    assert [each["policy"] for each in result["results"]] == ["fifo", "srtf"]


def test_compare_uses_several_processes(trace: str, dovetail: Callable[..., Any]) -> None:
    asked = ("--cluster", "1x4", "--policies", "fifo,srtf", "--processes", "2", "--json", "-")
    many = result_of(dovetail("compare", trace, *asked))
    one = result_of(dovetail("compare", trace, *asked[:5], "1", *asked[6:]))
    assert [r["jct"] for r in many["results"]] == [r["jct"] for r in one["results"]]


def test_traces_can_be_made_looked_at_and_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dovetail: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dovetail("trace", "generate", "poisson,jobs=50,rate=100,seed=1", "a.csv").code == 0
    assert dovetail("trace", "convert", "a.csv", "b.csv.gz").code == 0
    found = result_of(dovetail("trace", "inspect", "b.csv.gz", "--cluster", "2x4", "--json"))
    assert found["jobs"] == 50
    replayed = [
        result_of(dovetail("simulate", file, "--cluster", "2x8", "--json", "-"))["jct"]
        for file in ("a.csv", "b.csv.gz")
    ]
    assert replayed[0] == replayed[1]


def test_help_is_there_for_every_command(dovetail: Callable[..., Any]) -> None:
    for command in ((), ("simulate",), ("compare",), ("policies",), ("demo",), ("trace",)):
        answer = dovetail(*command, "--help")
        assert answer.code == 0
        assert "Usage" in answer.out


def test_a_reader_that_goes_away_is_no_error(trace: str) -> None:
    command = Path(sys.executable).with_name("dovetail")
    asked = f"{command} simulate {trace} --cluster 2x4 --json - | head -c 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", asked], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
