"""The same on PostgreSQL: a private server in a temporary folder, reached by a socket alone."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from staging import Stage
from test_crashes import killings

from dovetail.controller.store import Store
from dovetail.controller.timeline import timeline
from dovetail.model.errors import UserError

pytestmark = pytest.mark.real


def account() -> dict[str, Any]:
    """Servers refuse to run as root: take the account Debian made for them, or nobody."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    return {}


def run(*command: object, folder: Path) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **account(),
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A new server; gives the URL of its data base."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    found = sorted(glob("/usr/lib/postgresql/*/bin/initdb"))
    initdb = found[-1] if found else shutil.which("initdb")
    if initdb is None:
        pytest.skip("postgresql is not installed")
    tools = Path(initdb).parent
    # The path of a socket may not be long, which those of pytest are.
    folder = Path(tempfile.mkdtemp(prefix="dt-pg-"))
    if os.geteuid() == 0:
        os.chown(folder, account()["user"], account()["group"])
    data = folder / "data"
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    try:
        run(initdb, "-D", data, "-U", "dovetail", "-A", "trust", "-N", folder=folder)
        log = folder / "log"
        run(tools / "pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start", folder=folder)
        try:
            yield f"postgresql+psycopg://dovetail@/postgres?host={folder}"
        finally:
            run(tools / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop", folder=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(server: str) -> str:
    """The server's data base, emptied."""
    engine = create_engine(server)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return server


def test_a_kill_loses_nothing_on_postgresql(url: str, tmp_path: Path) -> None:
    found = killings("fake", tmp_path, "--url", url, "--every", "20")
    assert found["killed"] == found["points"] == 17


def test_kill_after_kill_on_postgresql(url: str, tmp_path: Path) -> None:
    found = killings("fake", tmp_path, "--url", url, "--chain", "--every", "40")
    assert found["killed"] > 4


def test_two_controllers_cannot_share_a_server(url: str) -> None:
    store = Store(url)
    with pytest.raises(UserError, match="another controller is using it"):
        Store(url)
    store.close()
    Store(url).close()


def test_a_server_that_is_not_there_is_one_sentence(url: str) -> None:
    with pytest.raises(UserError) as refused:
        Store("postgresql+psycopg://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_steps_of_an_older_program_are_taken_over_on_postgresql(url: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, url=url)
    number = stage.submit(length=5.0)
    stage.until(20.0)
    stage.site.close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE steps"))
        connection.execute(text("UPDATE meta SET value = '4' WHERE key = 'schema'"))
    engine.dispose()
    stage.controller = stage.site.open()
    assert [each.state for each in timeline(stage.controller, number)] == ["running"]
    stage.site.close()


# ---- through the command line ------------------------------------------------------------------


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """What a person would type, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dovetail", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )


def said(*words: object) -> str:
    done = command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def up(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A controller on this data base that answers; killed at the end at the latest."""
    words = ["up", "--data-dir", str(folder), "--gpus", "2", "--database", url]
    log = folder.parent / f"{folder.name}.log"
    with (
        open(log, "ab") as written,
        subprocess.Popen([sys.executable, "-m", "dovetail", *words], stderr=written) as process,
    ):
        try:
            for _ in range(600):
                if command("queue", "--data-dir", folder).returncode == 0:
                    break
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            yield process
        finally:
            process.kill()


def test_up_with_a_server_is_killed_and_goes_on_with_the_same_jobs(
    url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    here = ("--data-dir", folder)
    go = tmp_path / "go"
    # It ends while nobody is there to see it, with a code of its own.
    script = f"echo once >> {tmp_path / 'ran'}; until [ -e {go} ]; do sleep 0.05; done; exit 7"
    with up(folder, url):
        runs = said("submit", *here, "--gpus", 2, "--memory", "64M", "--", "sh", "-c", script)
        waits = said("submit", *here, "--gpus", 2, "--memory", "64M", "--", "true")
        array = said("submit", *here, "--gpus", 1, "--array", 3, "--memory", "64M", "--", "true")
        assert [runs, waits, array] == ["1\n", "2\n", "3\n"]
        while not (tmp_path / "ran").exists():
            time.sleep(0.05)
    assert not (folder / "dovetail.db").exists()
    go.touch()
    with up(folder, url):
        numbers = ("1", "2", "3.0", "3.1", "3.2")
        while json.loads(said("queue", *here, "--json"))["total"]:
            time.sleep(0.1)
        ends = [json.loads(said("show", *here, number, "--json"))["job"] for number in numbers]
        assert [each["state"] for each in ends] == ["failed", *["done"] * 4]
        assert ends[0]["code"] == 7
        assert (tmp_path / "ran").read_text() == "once\n"
        assert "all the same" in said("replay", "--database", url)
        said("down", *here)
    assert "all the same" in said("replay", "--database", url)


def test_up_is_refused_where_another_controller_has_the_server(url: str, tmp_path: Path) -> None:
    with up(tmp_path / "one", url):
        words = ("up", "--data-dir", tmp_path / "two", "--gpus", 1, "--database", url)
        refused = command(*words)
        assert refused.returncode == 2
        assert refused.stderr.startswith("dovetail: postgresql+psycopg://")
        assert refused.stderr.endswith("another controller is using it; stop that one first\n")
        # The first one has not noticed.
        assert said("submit", "--data-dir", tmp_path / "one", "--gpus", 1, "--", "true") == "1\n"
