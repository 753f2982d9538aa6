"""The same on PostgreSQL: a private server in a temporary folder, reached by a socket alone."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from test_crashes import killings

from dovetail.controller.store import Store
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
