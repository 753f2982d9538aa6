"""Controllers to talk to: in a thread of this process, or as a process of their own.

Both are the real thing: data base, local engine with virtual GPUs, UNIX socket and a port.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from remains import end

from dovetail.controller.api.app import make_app
from dovetail.controller.api.listening import Listening
from dovetail.controller.api.service import Limits, Service
from dovetail.controller.api.serving import serve
from dovetail.controller.loop import Settings
from dovetail.controller.opening import Engine, Opening, local, opened
from dovetail.controller.parts import Parts
from dovetail.live import Box, connect
from dovetail.live.connection import KEPT
from dovetail.tenancy.contracts import contracts_in
from dovetail.tenancy.kinds import Tenants

PYTHON = sys.executable
PATIENCE = 120.0
"""Seconds after which something will not come about any more, on the slowest machine."""
OWNERS = """
[[tenants]]
name = "vision"
gpus = [2]

[[tenants]]
name = "speech"
gpus = [2]
users = ["bob"]
"""
"""Two tenants who own all of four GPUs."""
OTHERS = ("daemon", "nobody")
"""Accounts that every Linux has."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be other users")


def until(fact: Callable[[], Any], what: str = "it") -> Any:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not (found := fact()):
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.02)
    return found


def told_by(file: Path) -> str:
    """A line of shell that waits until the test makes a file: for as long as it takes."""
    return f"until [ -e '{file}' ]; do sleep 0.02; done"


def slow_at_first(words: Sequence[str]) -> str:
    """A line of shell: a loop whose steps take long in its first attempt, to be stopped in time."""
    return f"exec {shlex.join(words)} $([ $DOVETAIL_ATTEMPT = 1 ] && echo 0.25 || echo 0)"


def of_tenants(kind: str = "cells") -> Parts:
    """What decides where tenants own all GPUs."""
    tenancy = Tenants(kind, contracts_in(OWNERS, "tenants.toml")).written()
    return Parts("fifo:skip=true", tenancy=tenancy)


class Hosted:
    """A controller in a thread; use it in a `with`."""

    def __init__(
        self,
        folder: Path,
        engine: Engine | None = None,
        parts: Parts | None = None,
        limits: Limits | None = None,
        shadow: str | None = None,
        **listening: Any,
    ) -> None:
        self.folder = folder
        self._engine = engine or local(4)
        settings = Settings(pace=0.02, backoff=lambda failures: 0.2)
        self._opening = Opening(
            folder,
            parts or Parts("fifo:skip=true"),
            settings=settings,
            limits=limits or Limits(),
            shadow=shadow,
        )
        self._where = Listening(folder, **{"port": 0, **listening})
        self._ready = threading.Event()
        # One that cannot be ended fails its test, not the end of all tests.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: BaseException | None = None
        self.port = 0

    def _run(self) -> None:
        try:
            with opened(self._opening, self._engine) as (self.service, self.keeper):
                # People with made-up names must be able to run something, even where we are root.
                self.service.as_owner = False
                self.app = make_app(self.service, self.keeper)
                asyncio.run(self._live())
        except BaseException as error:
            self.error = error
        finally:
            self._ready.set()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        await serve(self.service, self.app, self._where, self._greet)

    def _greet(self, port: int | None) -> None:
        self.port = port or 0
        self._ready.set()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        if self.error is not None:
            self._thread.join()
            raise self.error
        return self

    def __exit__(self, *_: object) -> None:
        self.end(stop_jobs=True)

    def end(self, stop_jobs: bool = False) -> None:
        if self._thread.is_alive():
            with suppress(Exception), self.box() as box:
                box.end(stop_jobs)
            self._thread.join(PATIENCE)
            assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def inside(self, call: Callable[[Service], Any]) -> Any:
        """Do something in the controller's own thread."""

        async def there() -> Any:
            return call(self.service)

        return asyncio.run_coroutine_threadsafe(there(), self._loop).result(PATIENCE)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def box(self) -> Box:
        return connect(self.folder)

    def token(self, role: str = "admin", owner: str = "ann", lasts: float = 3600.0) -> str:
        with self.box() as box:
            return box.make_token(owner=owner, role=role, lasts=lasts)

    def remote(self, role: str = "admin", owner: str = "ann") -> Box:
        """Somebody with a token, on the port."""
        return connect(url=self.url, token=self.token(role, owner))

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        """Plain HTTP on the port."""
        if token is not None:
            headers = {"Authorization": f"Bearer {token}", **headers}
        return httpx.Client(
            base_url=f"{self.url}/v1",
            headers=headers,
            timeout=PATIENCE,
            limits=httpx.Limits(keepalive_expiry=KEPT),
            trust_env=False,
        )


def command(*words: object) -> list[str]:
    return [PYTHON, "-m", "dovetail", *map(str, words)]


def surroundings(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a person who has nothing but this controller."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": "/", "COLUMNS": "80", "DOVETAIL_DATA_DIR": str(folder), **more}


class Process:
    """A controller as a process of its own."""

    def __init__(self, folder: Path, *options: object) -> None:
        self.folder = folder
        log = folder.parent / f"{folder.name}.log"
        with open(log, "wb") as said:
            self.process = subprocess.Popen(
                command("up", "--data-dir", folder, "--gpus", 4, *options),
                stdout=said,
                stderr=said,
                env=surroundings(folder),
                start_new_session=True,
            )
        self._log = log
        until(self._answers, "the controller")

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.said()
        return "Submit with" in self.said()

    def said(self) -> str:
        return self._log.read_text()

    def box(self) -> Box:
        return connect(self.folder)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            with self.box() as box:
                box.end(stop_jobs=True)
            assert self.wait() == 0, self.said()


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike those of the tests."""
    made = Path(tempfile.mkdtemp(prefix="dovetail-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        end(made)
        shutil.rmtree(made)


@contextmanager
def being(name: str) -> Iterator[None]:
    """Be somebody else for a while, as far as new connections and files are concerned."""
    account, groups = pwd.getpwnam(name), os.getgroups()
    os.setgroups([account.pw_gid])
    os.setegid(account.pw_gid)
    os.seteuid(account.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
