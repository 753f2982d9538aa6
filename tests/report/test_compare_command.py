"""The compare command, with an engine that answers at once."""

import dataclasses
import inspect
import json
import subprocess
import sys
from types import ModuleType

import pytest
import typer
from synthetic_runs import random_run
from typer.testing import CliRunner

from dovetail.cli import compare as command
from dovetail.model.errors import UserError


@pytest.mark.parametrize(
    ("text", "policies"),
    [
        ("fifo", ["fifo"]),
        ("fifo,srtf,las", ["fifo", "srtf", "las"]),
        (" fifo , srtf ,", ["fifo", "srtf"]),
        ("fifo;srtf", ["fifo", "srtf"]),
        ("fifo,fifo", ["fifo"]),
        ("las:thresholds=3250/7200,promote=8", ["las:thresholds=3250/7200,promote=8"]),
        ("fifo,las:a=1,b=2,srtf", ["fifo", "las:a=1,b=2", "srtf"]),
        ("las:a=1,b=2,las:a=2,b=3", ["las:a=1,b=2", "las:a=2,b=3"]),
        ("las:a=1;b.py:Mine", ["las:a=1", "b.py:Mine"]),
        ("mine.py:Policy:x=1,y=2,fifo", ["mine.py:Policy:x=1,y=2", "fifo"]),
        ("mine.py:Policy,fifo:skip=true", ["mine.py:Policy", "fifo:skip=true"]),
    ],
)
def test_policies_are_split_at_commas_but_not_inside_parameters(text, policies):
    assert command.split_policies(text) == policies


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no policy"),
        (" ; ,", "names no policy"),
        ("skip=true,fifo", "begins with 'skip=true'"),
        ("fifo,skip=true", "did you mean 'fifo:skip=true'"),
        ("las:a=1;b=2", "begins with 'b=2'"),
    ],
)
def test_a_list_of_policies_that_makes_no_sense_is_refused_with_a_hint(text, says):
    with pytest.raises(UserError, match=says):
        command.split_policies(text)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1", [0]), ("3", [0, 1, 2]), ("3,7", [3, 7]), ("7,", [7]), ("3,3,1", [3, 1])],
)
def test_seeds_are_a_number_of_them_or_a_list(text, seeds):
    assert command.parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "0", "x", "-1", "1,x", "3,-1", ","])
def test_seeds_that_are_none_are_refused(text):
    with pytest.raises(UserError, match="--seeds"):
        command.parse_seeds(text)


@dataclasses.dataclass(frozen=True)
class Replay:
    """What the engine takes: any field."""

    given: dict

    def __init__(self, **given):
        object.__setattr__(self, "given", given)

    @property
    def policy(self):
        return self.given["policy"]


STRETCH = {"fifo": 6.0, "srtf": 1.0}


@pytest.fixture
def engine(monkeypatch):
    """A stand-in for the simulator; `engine.asked` is what it was asked."""
    fake = ModuleType("dovetail.simulator.experiment")

    def grid(settings, processes, progress):
        fake.asked, fake.processes = settings, processes
        runs = []
        for done, each in enumerate(settings, 1):
            made = random_run(60, each.given["seed"], each.policy, STRETCH.get(each.policy, 2.0))
            made.settings["seed"] = each.given["seed"]
            made.series = made.series if each.given["series"] else None
            runs.append(made)
            progress(done, len(settings))
        return runs

    fake.Replay, fake.grid = Replay, grid
    monkeypatch.setitem(sys.modules, "dovetail.simulator.experiment", fake)
    return fake


def compare(*arguments):
    app = typer.Typer()
    app.command()(command.compare)
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})


def test_every_policy_runs_with_every_seed(engine):
    done = compare("t.csv", "--cluster", "2x8", "--policies", "fifo,srtf", "--seeds", "2")
    assert done.exit_code == 0, done.output
    asked = [(each.policy, each.given["seed"]) for each in engine.asked]
    assert asked == [("fifo", 0), ("fifo", 1), ("srtf", 0), ("srtf", 1)]


def test_what_was_not_asked_for_is_left_to_the_engine(engine):
    compare("t.csv", "--cluster", "2x8", "--policies", "fifo")
    assert engine.asked[0].given == {
        "trace": "t.csv",
        "cluster": "2x8",
        "policy": "fifo",
        "seed": 0,
        "series": False,
        "skip_bad": False,
    }


def test_options_reach_the_engine(engine):
    options = {
        "--placement": "best_fit",
        "--predictor": "history",
        "--format": "philly",
        "--partition-by": "vc=x.csv",
        "--from": "2017-10-01",
        "--to": "2017-10-08",
        "--measure": "10:20",
    }
    flat = [word for pair in options.items() for word in pair]
    compare("t.csv", "--cluster", "2x8", "--restart-cost", "0", "--processes", "1", *flat)
    given = engine.asked[0].given
    assert (given["start"], given["stop"]) == ("2017-10-01", "2017-10-08")
    assert (given["restart_cost"], given["partition_by"]) == (0.0, "vc=x.csv")
    assert (given["measure"], given["format"]) == ("10:20", "philly")
    assert engine.processes == 1


def test_a_generated_trace_is_another_one_for_each_of_several_seeds(engine):
    compare("generate:philly,jobs=9", "--cluster", "2x8", "--policies", "fifo", "--seeds", "2")
    traces = [each.given["trace"] for each in engine.asked]
    assert traces == ["generate:philly,jobs=9,seed=0", "generate:philly,jobs=9,seed=1"]


@pytest.mark.parametrize("trace", ["generate:philly,seed=4", "t.csv"])
def test_a_trace_that_is_given_stays_the_same_for_all_seeds(engine, trace):
    compare(trace, "--cluster", "2x8", "--policies", "fifo", "--seeds", "2")
    assert {each.given["trace"] for each in engine.asked} == {trace}


def test_the_comparison_is_shown_with_tenants_and_fairness(engine):
    done = compare("t.csv", "--cluster", "2x8", "--policies", "fifo,srtf", "--seeds", "3")
    for phrase in ("mean JCT", "Jain", "worst FTF", "org/team-", "±", "srtf has the lowest mean"):
        assert phrase in done.stdout


def test_json_holds_every_result_and_the_intervals(engine, tmp_path):
    file = tmp_path / "all.json"
    compare("t", "--cluster", "2x8", "--policies", "fifo,srtf", "--seeds", "2", "--json", str(file))
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["schema"] == "dovetail/comparison/1"
    assert [r["policy"] for r in found["results"]] == ["fifo", "fifo", "srtf", "srtf"]
    jct = found["policies"]["fifo"]["jct.mean"]
    assert jct["mean"] == pytest.approx(sum(r["jct"]["mean"] for r in found["results"][:2]) / 2)
    assert jct["half"] > 0
    assert jct["size"] == 2


def test_json_to_standard_output_is_json_alone(engine):
    done = compare("t.csv", "--cluster", "2x8", "--policies", "fifo", "--json", "-")
    assert json.loads(done.stdout)["results"][0]["policy"] == "fifo"


def test_html_asks_for_a_series_and_is_written(engine, tmp_path):
    file = tmp_path / "report.html"
    compare("t.csv", "--cluster", "2x8", "--policies", "fifo,srtf", "--html", str(file))
    assert engine.asked[0].given["series"] is True
    assert "2 policies on hand.csv" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(engine, option, tmp_path):
    done = compare("t.csv", "--cluster", "2x8", option, str(tmp_path / "no" / "x"))
    assert isinstance(done.exception, UserError)
    assert not hasattr(engine, "asked")


def test_the_help_explains_how_policies_are_separated():
    said = " ".join(compare("--help").stdout.replace("│", " ").split())
    assert "semicolon" in said
    assert "promote=8" in said


def test_every_option_that_is_passed_on_is_a_field_of_the_engine():
    from dovetail.simulator.experiment import Replay as Real

    passed = set(inspect.signature(command.compare).parameters)
    passed -= {"policies", "seeds", "processes", "json_file", "html_file"}
    assert passed <= {field.name for field in dataclasses.fields(Real)}


def test_the_command_is_loaded_without_heavy_modules():
    heavy = "{'numpy', 'plotly', 'rich.table', 'dovetail.simulator.experiment'}"
    code = (
        f"import sys, dovetail.cli.compare, dovetail.cli.tables; print({heavy} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
