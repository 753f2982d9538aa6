"""`dovetail trace inspect | convert | generate`, and the templates and guides of readers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from trace_support import told
from typer.testing import CliRunner

from dovetail.cli.trace import app, bar
from dovetail.model.errors import UserError
from dovetail.traces import BUILTIN
from dovetail.traces.generator import KINDS
from dovetail.traces.loader import load
from dovetail.traces.native import Native

File = Callable[..., str]

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
TEMPLATE = GUIDES / "templates" / "trace_reader.py"

TRACE = (
    "job_id,submit_time,gpus,duration,tenant,cpus\n"
    "a,0,4,3600,red,\nb,60,1,5,blue,\nc,3600,0,90000,red,8\nd,7200,64,20,[bold],\n"
)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None:
        raise result.exception
    return result.output


def words_of(*arguments: str) -> str:
    """What is printed, with every run of blanks as one: lines may be folded anywhere."""
    return " ".join(run(*arguments).split())


# ---- inspect ---------------------------------------------------------------------------------


def test_inspect_tells_what_is_in_a_trace(file: File) -> None:
    shown = words_of("inspect", file(TRACE))
    for words in (
        "jobs 4, 1 without a GPU",
        "outcomes 4 finished",
        "submitted from 0 s, within 2 h",
        "GPU time 4.36 GPU-hours",
        "64 GPUs 1 25.0 % ███",
        "1 day 1 25.0 % ███",
        "red 2 50.0 % ███",
        "[bold] 1 25.0 % ███",
    ):
        assert words in shown


def test_inspect_fits_80_columns(file: File) -> None:
    long = TRACE + f"{'e' * 90},9000,1,5,{'tenant/' * 20},\n"
    assert max(map(len, run("inspect", file(long)).splitlines())) <= 80


def test_inspect_compares_with_a_cluster(file: File) -> None:
    shown = words_of("inspect", file(TRACE), "--cluster", "2x8")
    assert "cluster 2x8: 16 GPUs, offered load 0.136; jobs wider than that: 1" in shown


def test_inspect_says_when_all_jobs_come_at_once(file: File) -> None:
    path = file("job_id,submit_time,gpus,duration\na,0,1,5\nb,0,1,5\n")
    assert "2x8: 16 GPUs, all jobs come at once" in words_of("inspect", path, "--cluster", "2x8")


def test_inspect_puts_many_sizes_together(file: File) -> None:
    rows = "".join(f"{size},0,{size},5\n" for size in range(40))
    shown = words_of("inspect", file("job_id,submit_time,gpus,duration\n" + rows))
    assert "1 GPU 1 2.5 %" in shown
    assert "17 to 32 GPUs 16 40.0 %" in shown


def test_inspect_gives_the_figures_as_json(file: File) -> None:
    figures = json.loads(run("inspect", file(TRACE), "--cluster", "2x8", "--json"))
    assert figures["schema"] == "dovetail/trace-summary/1"
    assert (figures["jobs"], figures["span"]) == (4, 7200)
    assert figures["sizes"] == {"0": 1, "1": 1, "4": 1, "64": 1}
    assert figures["tenants"] == {"red": 2, "blue": 1, "[bold]": 1}
    assert figures["cluster"]["gpus"] == 16
    assert figures["cluster"]["offered_load"] == pytest.approx(15685 / (16 * 7200))
    assert figures["duration"]["median"] == 1810


def test_inspect_shows_notices(file: File) -> None:
    path = file(TRACE + "e,1,x,5,,\nf,2,1,5,,\n")
    shown = words_of("inspect", path, "--skip-bad")
    assert "! 1 bad row skipped, first:" in shown
    assert "gpus is 'x': it must be a number" in shown
    assert "! the file was not in submit order" in shown


def test_inspect_takes_an_interval_and_a_format(file: File) -> None:
    shown = words_of("inspect", file(TRACE), "--from", "60", "--to", "3600", "--format", "native")
    assert "jobs 2, 1 without a GPU" in shown


def test_inspect_draws_a_generated_trace() -> None:
    shown = words_of("inspect", "generate:philly,jobs=500,load=0.5", "--cluster", "4x8")
    assert "32 GPUs, offered load 0.500" in shown


def test_a_mistake_reaches_the_top_as_one_sentence(file: File) -> None:
    with pytest.raises(UserError, match="no such file"):
        run("inspect", "nowhere.csv")
    with pytest.raises(UserError, match="is not NODESxGPUS"):
        run("inspect", file(TRACE), "--cluster", "big")


@pytest.mark.parametrize(
    ("share", "drawn"), [(0, ""), (1e-9, "▏"), (0.5, "██"), (0.53125, "██▏"), (1, "████")]
)
def test_a_bar_is_exact_to_an_eighth(share: float, drawn: str) -> None:
    assert bar(share, width=4) == drawn


# ---- convert and generate --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_convert_writes_what_it_read(name: str, file: File, tmp_path: Path) -> None:
    out = str(tmp_path / name)
    assert f"{out}: 4 jobs" in run("convert", file(TRACE), out)
    assert load(out).jobs == load(file(TRACE)).jobs


def test_convert_writes_only_columns_that_are_used(file: File, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    run("convert", file(TRACE), str(out), "--to", "60")
    assert out.read_text() == (
        "job_id,submit_time,gpus,duration,tenant\na,0,4,3600,red\nb,60,1,5,blue\n"
    )


def test_convert_keeps_dates(file: File, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    text = "job_id,submit_time,gpus,duration,deadline\na,2017-10-01,1,5,2017-10-02T00:00:30\n"
    run("convert", file(text), str(out))
    assert "a,2017-10-01T00:00:00,1,5,2017-10-02T00:00:30" in out.read_text()


def test_equal_traces_are_equal_bytes(file: File, tmp_path: Path) -> None:
    first, second = tmp_path / "a.gz", tmp_path / "b.gz"
    run("convert", file(TRACE), str(first))
    run("convert", file(TRACE), str(second))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("out", "complaint"),
    [("nowhere/out.csv", "there is no directory .*nowhere"), ("", "is a directory")],
)
def test_what_cannot_be_written_is_told(
    out: str, complaint: str, file: File, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=complaint):
        run("convert", file(TRACE), str(tmp_path / out))


def test_what_the_native_format_cannot_hold_is_refused(file: File, tmp_path: Path) -> None:
    from dovetail.model.request import Request, gang
    from dovetail.traces.writer import write

    trace = load(file(TRACE))
    job = next(iter(trace.jobs))
    either = Request((gang(2).alternatives[0], gang(1).alternatives[0]))
    trace.jobs = [job._replace(spec=job.spec._replace(request=either))]
    with pytest.raises(UserError, match="job a: the native format holds plain gangs only"):
        write(trace, str(tmp_path / "out.csv"))


@pytest.mark.parametrize("prefix", ["", "generate:"])
def test_generate_writes_the_jobs_that_a_simulation_would_get(prefix: str, tmp_path: Path) -> None:
    out = str(tmp_path / "made.csv")
    text = "philly,jobs=100,load=0.8,gpus=64,seed=1"
    assert f"{out}: 100 jobs" in run("generate", prefix + text, out)
    assert load(out).jobs == list(load(f"generate:{text}").jobs)


def test_generate_takes_the_size_of_a_cluster(tmp_path: Path) -> None:
    out = str(tmp_path / "made.csv")
    run("generate", "gavel,jobs=10,load=0.8", out, "--cluster", "4x8")
    assert load(out).jobs == list(load("generate:gavel,jobs=10,load=0.8", cluster_gpus=32).jobs)


# ---- templates and guides --------------------------------------------------------------------

LOG = "id,queued_at,cards,ran_for\nb,2024-05-01 10:00:05,2,7\na,2024-05-01 10:00:00,1,60\n"


def test_the_template_reads_a_log(file: File) -> None:
    jobs = load(file(LOG), format=f"{TEMPLATE}:MyCluster").jobs
    assert [told(job) for job in jobs] == ["a @0 1 +60", "b @5 2 +7"]


def test_the_template_reads_lines(file: File) -> None:
    jobs = load(file("b 5 2 7\na 0 1 60\n"), format=f"{TEMPLATE}:read_lines").jobs
    assert [told(job) for job in jobs] == ["a @0 1 +60", "b @5 2 +7"]


def test_the_template_works_on_the_command_line(file: File) -> None:
    shown = words_of("inspect", file(LOG), "--format", f"{TEMPLATE}:MyCluster")
    assert "jobs 2 outcomes" in shown


def test_the_template_is_short_and_the_guide_shows_it() -> None:
    text = TEMPLATE.read_text()
    assert len(text.splitlines()) < 36
    guide = (GUIDES / "read-a-trace.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL):
        assert block.strip() in text
        assert len(block.splitlines()) < 30


def test_the_guides_name_every_format_column_and_kind() -> None:
    readers = (GUIDES / "read-a-trace.md").read_text()
    native = (GUIDES / "native-trace.md").read_text()
    assert [name for name in BUILTIN if f"| `{name}` |" not in readers] == []
    assert [name for name in Native.columns if f"| `{name}` |" not in native] == []
    assert [name for name in KINDS if f"| `{name}` |" not in native] == []
