"""The page in a real browser: every plot is drawn and nothing complains."""

import shutil
import subprocess

import pytest
from synthetic_runs import random_run

from dovetail.report.html import html_report

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=8000",
    "--enable-logging=stderr",
    "--dump-dom",
)


@pytest.mark.real
@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_a_browser_draws_every_plot_without_a_word_of_complaint(tmp_path):
    runs = [(name, random_run(500, seed=1, policy=name)) for name in ("fifo", "las")]
    page = tmp_path / "report.html"
    page.write_text(html_report(runs, "In a browser"), encoding="utf-8")
    command = [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    for key in ("jct", "queue", "use", "tenants", "sizes"):
        plot = done.stdout.split(f'id="plot-{key}"')[1].split("</figure>")[0]
        assert "main-svg" in plot
        assert "trace" in plot
    assert "CONSOLE" not in done.stderr
