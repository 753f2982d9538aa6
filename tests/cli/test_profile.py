"""`dovetail profile`: from a command to a sentence, a curve and a file; and mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.profiler.pinning import available_cores
from dovetail.profiles import published, read_profiles, written

LOOP = """\
import time
from dovetail_client import steps
for _ in steps(range(9999)):
    time.sleep(0.01)
"""
QUICK = ("--seconds", "0.4", "--warmup", "0.1", "--patience", "60")
DATA = ("--dataset-size", "1", "--storage-bandwidth", "5")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "stream.py").write_text(LOOP.replace("range(9999)", "iter(range(9999))"))
    (tmp_path / "bad.toml").write_text("[x]\nspeed = 3\n")
    (tmp_path / "small").write_text("x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_becomes_a_sentence_a_curve_and_a_file(
    dovetail: Callable[..., Any], folder: Path
) -> None:
    (folder / "mine.toml").write_text(written({"gnmt": published()["gnmt"]}))
    answer = dovetail(
        "profile", *QUICK, *DATA, "--out", "mine.toml", "--html", "page.html",
        "--", sys.executable, "train.py",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "train " in answer.out
    assert "per GPU" in answer.out
    assert "Speed over cores per GPU" in answer.out
    assert "Speed over cores and memory per GPU" in answer.out
    assert "the full grid of" in answer.out
    assert "Expected error" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80
    kept = read_profiles("mine.toml")
    assert set(kept) == {"gnmt", "train"}
    page = Path("page.html").read_text()
    assert "Profile of train" in page
    assert 'id="plot-cores"' in page
    assert 'id="plot-memory"' in page
    assert "default-src 'none'" in page


def test_the_json_says_the_same(dovetail: Callable[..., Any]) -> None:
    answer = dovetail("profile", *QUICK, "--json", "--name", "mine", sys.executable, "train.py")
    found = json.loads(answer.out)
    assert found["schema"] == "dovetail/profile/1"
    assert found["name"] == "mine"
    assert found["says"].startswith(("profits", "is content"))
    assert len(found["points"]) == len(found["surface"]["cores"]) >= 1
    assert found["cost"]["seconds"] > 0
    assert len(found["surface"]["memory"]) == 1


def test_a_dataset_is_measured_where_it_lies(dovetail: Callable[..., Any], folder: Path) -> None:
    (folder / "data").write_bytes(os.urandom(4 << 20))
    answer = dovetail(
        "profile", *QUICK, "--json", "--dataset", "data", "--", sys.executable, "train.py"
    )
    memory = json.loads(answer.out)["surface"]["memory"]
    assert memory[-1] - memory[0] == pytest.approx(4 / 1024, rel=0.01)


def test_a_known_profile_is_shown(dovetail: Callable[..., Any]) -> None:
    answer = dovetail("profile", "--show", "res18")
    assert answer.out.startswith(
        "res18 profits up to 9 cores per GPU, needs 60 GiB; 3 cores cost it 58 %."
    )
    assert max(map(len, answer.out.splitlines())) <= 80


def test_a_profile_of_a_file_is_shown(dovetail: Callable[..., Any]) -> None:
    Path("own.toml").write_text(written({"mine": published()["m5"]}).replace("[m5]", "[mine]"))
    answer = dovetail("profile", "--show", "mine", "--profiles", "own.toml", "--json")
    assert json.loads(answer.out)["needs"]["cores"] == 6


def test_what_was_measured_is_kept_when_somebody_stops_it(folder: Path) -> None:
    if len(available_cores()) < 2:
        pytest.skip("needs two cores")
    # The third point is long: the first two are measured when the signal comes.
    script = (
        "import dovetail.profiler.running as r, time\n"
        "def measure(command, cores, window):\n"
        "    if cores not in (1, 8): print('waiting', flush=True); time.sleep(600)\n"
        "    return r.Measurement(cores, float(cores), memory=1.0, seconds=1.0)\n"
        "r.measure = measure\n"
        "import dovetail.profiler.pinning as p\n"
        "p.available_cores = lambda: list(range(8))\n"
        "from dovetail.cli import main; main()"
    )
    arguments = ["profile", "--out", "kept.toml", "--", "train.py"]
    running = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "Stopped after 2 points" in out
    assert read_profiles("kept.toml")["train"].surface.cores == (1.0, 8.0)


MISTAKES = [
    ((), "give the command to measure"),
    (("--show", "alexnt"), "did you mean 'alexnet'"),
    (("--show", "alexnet", "--", "train.py"), "--show takes no command"),
    (("--show", "alexnet", "--profiles", "gone.toml"), "gone.toml: cannot be read"),
    (("--cores", "0", "--", "x"), "0 cores asked for"),
    (("--cores", "99999", "--", "x"), "99999 cores asked for"),
    (("--cores", "1", "--gpus", "2", "--", "x"), "2 GPUs need at least 2 cores"),
    (("--gpus", "0", "--", "x"), "--gpus"),
    (("--points", "1", "--", "x"), "at least 2 points"),
    (("--seconds", "0", "--", "x"), "must take some seconds"),
    (("--seconds", "nan", "--", "x"), "must take some seconds"),
    (("--warmup", "-1", "--", "x"), "must take some seconds"),
    (("--patience", "0", "--", "x"), "must take some seconds"),
    (("--reference-cores", "0", "--", "x"), "--reference-cores must be a number above 0"),
    (("--reference-memory", "inf", "--", "x"), "--reference-memory must be a number above 0"),
    (("--working-memory", "-2", "--", "x"), "--working-memory must be a number above 0"),
    (("--dataset-size", "5", "--", "x"), "give both"),
    (("--storage-bandwidth", "5", "--", "x"), "give both"),
    (("--dataset-size", "nan", "--storage-bandwidth", "5", "--", "x"), "--dataset-size must be"),
    (("--dataset", "gone", "--", "x"), "gone: there is no such file or folder"),
    (("--epoch-steps", "0", "--", "x"), "--epoch-steps must be a number above 0"),
    (("--out", "gone/x.toml", "--", "x"), "folder does not exist"),
    (("--out", "bad.toml", "--", "x"), "bad.toml: [x] lacks"),
    (("--html", "gone/x.html", "--", "x"), "folder does not exist"),
    (("--", "no-such-program"), "no-such-program: there is no such command"),
    ((*QUICK, "--", sys.executable, "gone.py"), "ended with code 2"),
    ((*QUICK, *DATA, "--", sys.executable, "stream.py"), "give --epoch-steps"),
    (
        (*QUICK, "--dataset", "small", "--cores", "1", "--", sys.executable, "train.py"),
        "too little data",
    ),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES, ids=[row[1] for row in MISTAKES])
def test_a_mistake_is_one_sentence(
    arguments: tuple[str, ...], words: str, dovetail: Callable[..., Any]
) -> None:
    answer = dovetail("profile", *arguments)
    assert answer.code == 2
    (sentence,) = answer.err.splitlines()
    assert sentence.startswith("dovetail: ")
    assert words in sentence
