"""`dovetail top` in a real terminal of 80x24, as a person uses it; and in a pipe."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pyte
import pytest
from hosting import PATIENCE, Hosted, command, surroundings, until

from dovetail.live import Box

COLUMNS, LINES = 80, 24
DOWN = "\x1b[B"


class Terminal:
    """A terminal with `dovetail top` in it, and what a person sees there."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._end, far = pty.openpty()
        ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        env = surroundings(folder, TERM="xterm-256color", LANG="C.UTF-8")
        del env["COLUMNS"]
        self.process = subprocess.Popen(
            command("top", "--every", "0.3", *words),
            stdin=far,
            stdout=far,
            stderr=far,
            env=env,
            start_new_session=True,
        )
        self.settings = termios.tcgetattr(far)
        self._far = far

    def press(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def lines(self) -> list[str]:
        while select.select([self._end], [], [], 0.05)[0]:
            self._stream.feed(os.read(self._end, 65536))
        return [line.rstrip() for line in self._screen.display]

    def shows(self, *texts: str) -> list[str]:
        """Wait until all of these can be read."""
        deadline = time.monotonic() + PATIENCE
        while True:
            lines = self.lines()
            if all(text in "\n".join(lines) for text in texts):
                return lines
            assert time.monotonic() < deadline, "\n".join(lines)

    def left(self) -> int:
        """The exit code, once it has ended; the terminal is as it was."""
        until(lambda: self.lines() is not None and self.process.poll() is not None, "the end")
        assert termios.tcgetattr(self._far)[3] & termios.ICANON
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)
        os.close(self._end)
        os.close(self._far)


@pytest.fixture
def terminal(host: Hosted) -> Iterator[Terminal]:
    made = Terminal(host.folder)
    yield made
    made.close()


def selected(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("▸"))


def test_it_shows_gpus_queue_and_reasons_and_follows_what_happens(
    box: Box, terminal: Terminal
) -> None:
    terminal.shows("no job is waiting or running", "[·][·][·][·]")
    box.submit(["sleep", "600"], gpus=3, name="three")
    box.submit(["sleep", "600"], gpus=2, name="two")
    lines = terminal.shows("[1][1][1][·]", "three", "running", "waiting", "1 running, 1 not")
    assert any("two" in line and "GPU" in line for line in lines)
    assert any("cpu" in line and "mem" in line for line in lines[:4])
    assert len(lines) == LINES and "q quit" in lines[-1]
    box.cancel(1)
    terminal.shows("[2][2][·][·]")
    terminal.press("q")
    assert terminal.left() == 0


def test_keys_move_explain_and_cancel(box: Box, terminal: Terminal) -> None:
    for name in ("first", "second", "third"):
        box.submit(["sleep", "600"], gpus=4, name=name)
    assert "first" in selected(terminal.shows("third"))
    terminal.press("j")
    terminal.shows("▸ 2")
    terminal.press(DOWN)
    assert "third" in selected(terminal.shows("▸ 3"))
    terminal.press("w")
    terminal.shows("job 3 (third) is waiting", "In front of it")
    terminal.press("\x1b")
    terminal.shows("▸ 3")
    terminal.press("\r")
    terminal.shows("submitted", "sleep 600", "third")
    terminal.press("\r")
    terminal.shows("▸ 3")
    terminal.press("c")
    terminal.shows("Cancel job 3 (third)?")
    terminal.press("n")
    terminal.shows("q quit")
    assert box.show(3).job.state == "waiting"
    terminal.press("cy")
    terminal.shows("job 3 is cancelled")
    assert box.show(3).job.state == "cancelled"
    terminal.press("k")
    terminal.shows("▸ 1")


def test_only_mine(host: Hosted, box: Box, terminal: Terminal) -> None:
    with host.remote("user", "bob") as bob:
        bob.submit(["sleep", "600"], name="bobs", directory="/tmp")
    box.submit(["sleep", "600"], name="mine")
    terminal.shows("bobs", "mine")
    terminal.press("f")
    assert not any("bobs" in line for line in terminal.shows("only your jobs"))
    terminal.press("f")
    terminal.shows("bobs", "everybody")


def test_it_goes_on_when_the_controller_is_away_and_leaves_on_an_interrupt(
    host: Hosted, terminal: Terminal
) -> None:
    terminal.shows("no job is waiting")
    host.end()
    terminal.shows("no controller answers there")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.left() == 0


def test_in_a_pipe_it_prints_once(
    box: Box, dovetail: Callable[..., Any], host: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(host.folder))
    box.submit(["sleep", "600"], gpus=1, name="one")
    answer = dovetail("top")
    assert answer.code == 0
    assert "one" in answer.out and "1 of 1 jobs run" in until(lambda: dovetail("top").out)
    assert "\x1b" not in answer.out
    assert all(len(line.rstrip()) <= 80 for line in answer.out.splitlines())
