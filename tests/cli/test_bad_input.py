"""What a person can get wrong: each mistake is one sentence on standard error and exit code 2."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

HEADER = "job_id,submit_time,gpus,duration"
PACKED = gzip.compress("\n".join([HEADER, *(f"{n},{n},1,5" for n in range(1000))]).encode())

FILES: dict[str, str | bytes] = {
    "good.csv": f"{HEADER}\na,0,1,5\nb,1,2,5\n",
    "empty.csv": "",
    "header.csv": f"{HEADER}\n",
    "missing.csv": "job_id,submit_time,gpus\na,0,1\n",
    "text.csv": f"{HEADER}\na,0,1,5\nb,0,one,5\n",
    "negative.csv": f"{HEADER}\na,0,1,-5\n",
    "nan.csv": f"{HEADER}\na,0,1,nan\n",
    "infinite.csv": f"{HEADER}\na,0,1,inf\n",
    "before.csv": f"{HEADER}\na,-3,1,5\n",
    "twice.csv": f"{HEADER}\na,0,1,5\nb,0,1,5\na,1,1,5\n",
    "short.csv": f"{HEADER}\na,0,1\n",
    "cut.csv.gz": PACKED[: len(PACKED) // 2],
    "binary.csv": bytes(range(256)),
    "parts.csv": "vc,nodes\nred,one\n",
    "parts2.csv": "vc,nodes\nred,1\nred,1\n",
    "parts3.csv": "vc,nodes\n",
    "parts4.csv": "vc,nodes\nred,99\n",
    "faults1.csv": "time,node,event\n5,n0,explode\n",
    "faults2.csv": "time,node,event\n5,n9,down\n",
    "faults3.csv": "time,node,event\nnan,n0,down\n",
    "faults4.csv": "time,node,event\n-4,n0,down\n",
    "faults5.csv": "when,node,event\n5,n0,down\n",
    "faults6.csv": "time,node,event\n5\n",
    "syntax.py": "def (",
    "no_plug_in.py": "class Other:\n    pass\nvalue = 3\n",
    "not.toml": "gpus = = 2",
    "none.toml": "",
    "key.toml": "[[nodes]]\ngpus = 2\nspeed = 3",
    "count.toml": "[[nodes]]\ngpus = 2\ncount = 'x'",
    "minus.toml": "[[nodes]]\ngpus = 2\ncount = -1",
    "wide.toml": "[[nodes]]\ngpus = 99",
    "table.toml": "[[node]]\ngpus = 2",
    "scalar.toml": "nodes = 5",
    "words.toml": "nodes = ['a']",
    "cost.toml": "[[nodes]]\ngpus = 2\n[costs]\nrestart = 'x'",
    "cost2.toml": "[[nodes]]\ngpus = 2\n[costs]\nrestart = -3",
    "cost3.toml": "[[nodes]]\ngpus = 2\n[costs]\nrestrat = 3",
    "speed.toml": "[[nodes]]\ngpus = 2\n[speed]\ngpu = 0",
    "speed2.toml": "[[nodes]]\ngpus = 2\n[speed]\ngpu = 'fast'",
    "speed3.toml": "[[nodes]]\ngpus = 2\ntype = 'A100'\n[speed]\nA10 = 2",
}

TRACES = [
    ("empty.csv", "is empty"),
    ("header.csv", "no jobs"),
    ("missing.csv", "'duration'"),
    ("text.csv", "text.csv:3: gpus is 'one'"),
    ("negative.csv", "negative.csv:2: duration is '-5'"),
    ("nan.csv", "nan.csv:2: duration is 'nan'"),
    ("infinite.csv", "infinite.csv:2: duration is 'inf'"),
    ("before.csv", "before.csv:2"),
    ("twice.csv", "twice.csv:4: job id a is already used on line 2"),
    ("short.csv", "short.csv:2: duration is missing"),
    ("cut.csv.gz", "is cut short or damaged"),
    ("binary.csv", "is not a text file"),
    ("gone.csv", "no such file"),
    (".", "is a directory"),
    ("generate:nothing", "unknown kind 'nothing'"),
    ("generate:philly,jobs=x", "not a valid int"),
    ("generate:philly,jbos=5", "did you mean 'jobs'"),
]

CLUSTERS = [
    ("", "is not NODESxGPUS"),
    ("8", "is not NODESxGPUS"),
    ("x8", "is not NODESxGPUS"),
    ("2x", "is not NODESxGPUS"),
    ("2x8x8", "is not NODESxGPUS"),
    ("-1x4", "is not NODESxGPUS"),
    ("1.5x4", "is not NODESxGPUS"),
    ("2x4+", "is not NODESxGPUS"),
    ("0x8", "0 nodes make no cluster"),
    ("99999999x8", "make no cluster"),
    ("2x65", "64 is the most"),
    ("2x4,cpus", "key=value"),
    ("2x4,cpus=x", "is not a number"),
    ("2x4,cpus=-1", "makes no sense"),
    ("2x4,cpus=nan", "makes no sense"),
    ("2x4,cpu=8", "did you mean 'cpus'"),
    ("2x4,rack=-1", "makes no sense"),
    ("2x4,cpus=8+2x4", "every part of the cluster or for none"),
    ("gone.toml", "cannot be read"),
    ("not.toml", "not a TOML file"),
    ("none.toml", "no [[nodes]] table"),
    ("key.toml", "unknown key 'speed'"),
    ("count.toml", "whole numbers"),
    ("minus.toml", "make no cluster"),
    ("wide.toml", "64 is the most"),
    ("table.toml", "did you mean 'nodes'"),
    ("scalar.toml", "must be a list"),
    ("words.toml", "must be a table"),
    ("cost.toml", "restart"),
    ("cost2.toml", "restart"),
    ("cost3.toml", "did you mean 'restart'"),
    ("speed.toml", "speed"),
    ("speed2.toml", "speed"),
    ("speed3.toml", "did you mean 'A100'"),
]

OPTIONS = [
    ("--policy", "fifoo", "unknown policy 'fifoo'; did you mean 'fifo'?"),
    ("--policy", "", "unknown policy ''"),
    ("--policy", "fifo:skip", "key=value"),
    ("--policy", "fifo:skp=true", "did you mean 'skip'"),
    ("--policy", "fifo:skip=perhaps", "say true or false"),
    ("--policy", "las:round=x", "not a valid float"),
    ("--policy", "las:thresholds=9/3", "must rise"),
    ("--policy", "gone.py:Mine", "no such file"),
    ("--policy", "syntax.py:Mine", "cannot be loaded"),
    ("--policy", "no_plug_in.py:Mine", "has no 'Mine'"),
    ("--policy", "no_plug_in.py:Other", "no ordering"),
    ("--policy", "no_plug_in.py:value", "not a class"),
    ("--placement", "nowhere", "unknown placement 'nowhere'"),
    ("--placement", "consolidated:fit=x", "say first or best"),
    ("--predictor", "crystal", "unknown predictor 'crystal'"),
    ("--predictor", "history:default=x", "not a valid float"),
    ("--allocator", "fair", "unknown allocator 'fair'"),
    ("--format", "morse", "unknown trace format 'morse'"),
    ("--measure", "5", "FIRST:LAST"),
    ("--measure", "9:3", "FIRST:LAST"),
    ("--measure", "a:b", "FIRST:LAST"),
    ("--measure", "-1:4", "FIRST:LAST"),
    ("--partition-by", "vc", "COLUMN=FILE"),
    ("--partition-by", "planet=parts.csv", "COLUMN=FILE"),
    ("--partition-by", "vc=gone.csv", "cannot be read"),
    ("--partition-by", "vc=binary.csv", "is not a text file"),
    ("--partition-by", "vc=parts.csv", "parts.csv:2: 'red,one' is not NAME,NODES"),
    ("--partition-by", "vc=parts2.csv", "parts2.csv:3: partition 'red' is listed twice"),
    ("--partition-by", "vc=parts3.csv", "lists no partitions"),
    ("--partition-by", "vc=parts4.csv", "the partitions need 99 nodes"),
    ("--quotas", "ann", "write NAME=GPUS"),
    ("--quotas", "ann=many", "is not a number of at least 0"),
    ("--quotas", "gone.toml", "cannot be read"),
    ("--faults", "gone.csv", "cannot be read"),
    ("--faults", "binary.csv", "is not a text file"),
    ("--faults", "faults1.csv", "faults1.csv:2: event 'explode'"),
    ("--faults", "faults2.csv", "faults2.csv:2: no node is named 'n9'"),
    ("--faults", "faults3.csv", "faults3.csv:2: needs time"),
    ("--faults", "faults4.csv", "faults4.csv:2: needs time"),
    ("--faults", "faults5.csv", "faults5.csv:2: needs time"),
    ("--faults", "faults6.csv", "faults6.csv:2: needs time"),
    ("--faults", "job=2", "makes no sense"),
    ("--faults", "job=nan", "makes no sense"),
    ("--faults", "job=x", "is not a number"),
    ("--faults", "jobs=0.1", "did you mean 'job'"),
    ("--faults", "node_mtbf=0", "makes no sense"),
    ("--faults", "repair=5", "give node_mtbf= too"),
    ("--restart-cost", "-1", "at least 0"),
    ("--restart-cost", "nan", "at least 0"),
    ("--restart-cost", "x", "valid number"),
    ("--stop-cost", "-1", "at least 0"),
    ("--move-cost", "inf", "at least 0"),
    ("--span-penalty", "-0.5", "at least 0"),
    ("--from", "yesterday", "a date like"),
    ("--to", "x", "a date like"),
    ("--from", "100", "no job is submitted between"),
    ("--seed", "-1", "--seed"),
    ("--seed", "x", "--seed"),
    ("--nonsense", "1", "No such option"),
    ("--json", "gone/result.json", "folder does not exist"),
    ("--json", ".", "is a folder"),
    ("--jobs", "gone/jobs.csv", "folder does not exist"),
    ("--html", "gone/report.html", "folder does not exist"),
    ("--json", "/proc/result.json", "cannot be written"),
    ("--jobs", "/proc/jobs.csv", "cannot be written"),
    ("--html", "/proc/report.html", "cannot be written"),
    ("--json", "/dev/full", "cannot be written (No space left on device)"),
]

COMMANDS = [
    (("simulate", "good.csv"), "Missing option '--cluster'"),
    (("simulate",), "Missing argument"),
    (("nonsense",), "No such command 'nonsense'"),
    (("compare", "good.csv", "--cluster", "1x4", "--policies", "fifo,nope"), "unknown policy"),
    (("compare", "good.csv", "--cluster", "1x4", "--policies", ""), "names no policy"),
    (("compare", "empty.csv", "--cluster", "1x4", "--policies", "fifo"), "is empty"),
    (("compare", "good.csv", "--cluster", "1x4", "--json", "/proc/x"), "cannot be written"),
    (("trace", "inspect", "cut.csv.gz"), "is cut short"),
    (("trace", "convert", "good.csv", "gone/x.csv"), "no directory"),
    (("trace", "generate", "nothing", "x.csv"), "unknown kind"),
    (("policies", "--json", "gone/x.json"), "gone/x.json: cannot be written (its folder does not"),
    (("policies", "--json", "."), "cannot be written (it is a folder)"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder full of mistakes."""
    for name, content in FILES.items():
        written = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(written)
    monkeypatch.chdir(tmp_path)


def assert_refused(answer: Any, words: str) -> None:
    assert answer.code == 2
    assert "Traceback" not in answer.err
    (sentence,) = answer.err.splitlines()
    assert sentence.startswith("dovetail: ")
    assert len(sentence) > len("dovetail: ")
    assert words in sentence


@pytest.mark.parametrize(("trace", "words"), TRACES)
def test_a_bad_trace(trace: str, words: str, dovetail: Callable[..., Any]) -> None:
    assert_refused(dovetail("simulate", trace, "--cluster", "1x4"), words)


@pytest.mark.parametrize(("cluster", "words"), CLUSTERS)
def test_a_cluster_that_makes_no_sense(
    cluster: str, words: str, dovetail: Callable[..., Any]
) -> None:
    assert_refused(dovetail("simulate", "good.csv", "--cluster", cluster), words)


@pytest.mark.parametrize(("option", "value", "words"), OPTIONS)
def test_a_bad_option(option: str, value: str, words: str, dovetail: Callable[..., Any]) -> None:
    assert_refused(dovetail("simulate", "good.csv", "--cluster", "1x4", option, value), words)


@pytest.mark.parametrize(("command", "words"), COMMANDS)
def test_a_bad_command(command: tuple[str, ...], words: str, dovetail: Callable[..., Any]) -> None:
    assert_refused(dovetail(*command), words)


def test_rows_that_are_wrong_can_be_left_out(dovetail: Callable[..., Any]) -> None:
    answer = dovetail("simulate", "text.csv", "--cluster", "1x4", "--skip-bad", "--json", "-")
    assert answer.code == 0
    assert "1" in answer.err
    assert '"finished": 1' in answer.out


@pytest.mark.parametrize("command", [(), ("trace",)])
def test_a_command_without_a_command_shows_help(
    command: tuple[str, ...], dovetail: Callable[..., Any]
) -> None:
    answer = dovetail(*command)
    assert "Usage" in answer.out + answer.err
    assert "dovetail: \n" not in answer.err


def test_a_disk_that_is_full_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dovetail", "--version"],
            stdout=full,
            check=False,
            stderr=subprocess.PIPE,
            text=True,
        )
    said = "dovetail: the output cannot be written (No space left on device)\n"
    assert (done.returncode, done.stderr) == (2, said)


class Interrupted:
    """What is still being loaded when somebody presses Ctrl-C."""

    def __getattr__(self, name: str) -> NoReturn:
        raise KeyboardInterrupt


def test_ctrl_c_says_nothing_even_while_commands_are_loaded(
    dovetail: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dovetail.cli.app", Interrupted())
    assert dovetail("policies") == (130, "", "")


def test_the_version_is_told(dovetail: Callable[..., Any]) -> None:
    from dovetail import __version__

    assert dovetail("--version") == (0, f"dovetail {__version__}\n", "")
