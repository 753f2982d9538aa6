"""The programs behind the pages on Synergy run, and the pages show what they print and draw."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from doc_support import ROOT

FOLDER = ROOT / "examples" / "synergy"
IMAGES = ROOT / "docs" / "images"
DATA = ROOT / ".." / "shared" / "data" / "synergy"


def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(FOLDER / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_picture_of_a_node_is_what_the_allocator_does(tmp_path: Path) -> None:
    done = run("node.py", "--svg", tmp_path / "node.svg")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "together 1.40 x as fast"
    assert (tmp_path / "node.svg").read_text() == (IMAGES / "synergy-node.svg").read_text()


def test_the_small_sweep_writes_figures_a_page_and_a_picture(tmp_path: Path) -> None:
    done = run("figure.py", "--quick", "--processes", 1, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    points = json.loads((tmp_path / "figure.json").read_text())["points"]
    assert len(points) == 16
    for fair, tuned in zip(points[::2], points[1::2], strict=True):
        assert (fair["allocator"], tuned["allocator"]) == ("proportional", "tune")
        assert tuned["mean"] < fair["mean"]
    assert "published: up to 3.4" in (tmp_path / "figure.html").read_text()
    assert "published: up to 3.4" in (tmp_path / "figure.svg").read_text()


def test_the_picture_of_the_sweep_is_drawn_from_the_figures_beside_it(tmp_path: Path) -> None:
    (tmp_path / "figure.json").write_text((FOLDER / "figure.json").read_text())
    done = run("figure.py", "--again", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "figure.svg").read_text() == (IMAGES / "synergy-load.svg").read_text()


def test_the_gains_on_the_page_are_those_of_the_sweep(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "design" / "synergy.md").read_text()
    points = json.loads((FOLDER / "figure.json").read_text())["points"]
    for fair, tuned in zip(points[::2], points[1::2], strict=True):
        if fair["costs"] == "free" and fair["policy"] != "FIFO":
            gain = fair["mean"] / tuned["mean"]
            assert f"{fair['mean']:.2f} → {tuned['mean']:.2f} ({gain:.2f} ×)" in page


def test_a_table_without_its_data_says_so(tmp_path: Path) -> None:
    done = run("table.py", tmp_path)
    assert done.returncode == 2
    assert done.stdout == (
        f"{tmp_path} has no summary.csv: give the folder with the artifact's runs.\n"
    )


@pytest.mark.shared
@pytest.mark.skipif(not DATA.exists(), reason="the artifact's runs are not at hand")
def test_the_table_of_the_page_is_what_the_program_writes(tmp_path: Path) -> None:
    done = run("table.py", DATA, "--only", "static100", "--markdown", tmp_path / "table.md")
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "design" / "synergy.md").read_text()
    assert set((tmp_path / "table.md").read_text().splitlines()) <= set(page.splitlines())
