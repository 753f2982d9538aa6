"""Controllers to look at, each a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from hosting import PATIENCE

from dovetail.live import Box
from dovetail.live.finding import Address

HERE = Path(__file__).parent
PORT = re.compile(r"http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class Served:
    """A controller that answers."""

    port: int
    token: str
    folder: Path
    box: Box

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def ask(self, path: str, **values: Any) -> Any:
        """What the API says."""
        answer = httpx.get(
            f"{self.url}v1/{path}", headers=self.headers, params=values, timeout=PATIENCE
        )
        answer.raise_for_status()
        return answer.json()


@contextmanager
def _process(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (
        open(log, "wb") as said,
        subprocess.Popen([sys.executable, *words], stdout=said, stderr=said) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


def _until(process: subprocess.Popen[bytes], log: Path, word: str) -> str:
    for _ in range(2400):
        text = log.read_text()
        if word in text:
            return text
        assert process.poll() is None, text
        time.sleep(0.05)
    raise AssertionError(log.read_text())


@contextmanager
def crowded(folder: Path, cluster: str, jobs: int, hours: float) -> Iterator[Served]:
    """Fake machines with many jobs."""
    log = folder / "said"
    words = [str(HERE / "crowd.py"), str(folder), cluster, str(jobs), str(hours)]
    with _process(words, log) as process:
        said = json.loads(_until(process, log, "}\n"))
        url = f"http://127.0.0.1:{said['port']}"
        with Box(Address(url=url, token=said["token"])) as box:
            yield Served(said["port"], said["token"], folder, box)


@contextmanager
def real(folder: Path, *options: str) -> Iterator[Served]:
    """This machine with virtual GPUs, as `dovetail up` makes it."""
    log = folder.parent / f"{folder.name}.log"
    words = ["-m", "dovetail", "up", "--data-dir", str(folder), "--gpus", "4", "--port", "0"]
    with _process([*words, *options], log) as process:
        said = PORT.search(_until(process, log, "Submit with"))
        assert said is not None
        with Box(Address(folder)) as box:
            token = box.make_token(role="admin")
            yield Served(int(said[1]), token, folder, box)
