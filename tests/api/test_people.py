"""Several people on one machine: known by their sockets, each with their own jobs, files, logs."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosting import OTHERS, Process, being, needs_root, open_folder, until

from dovetail.controller.api.people import Doorkeeper, Role
from dovetail.controller.api.refusing import Refused
from dovetail.controller.store import Store
from dovetail.controller.tokens import Tokens
from dovetail.live import Box, connect
from dovetail.model.errors import UserError

ANN, BOB = OTHERS


@pytest.fixture(scope="module")
def root() -> Iterator[Process]:
    """One controller of root for all tests here: they differ in who asks."""
    with open_folder() as folder:
        process = Process(folder / "data")
        try:
            yield process
        finally:
            process.close()


def as_user(name: str, root: Process) -> Box:
    """A line that somebody opened; what goes over it later is theirs too."""
    box = connect(root.folder)
    with being(name):
        assert box.about().you == name
    return box


def submitted(box: Box, *words: str, **fields: object) -> int:
    return box.submit({"command": list(words), "directory": "/", **fields})


@needs_root
def test_jobs_run_as_whoever_submitted_them(root: Process, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("root's own")
    private.chmod(0o600)
    with as_user(ANN, root) as ann:
        assert ann.about().role == "user"
        number = submitted(ann, "sh", "-c", f"id -un; id -G; echo $HOME; cat {private} || echo no")
        assert ann.wait(number).state == "done"
        account = pwd.getpwnam(ANN)
        groups = os.getgrouplist(ANN, account.pw_gid)
        text = ann.log(number).text
    assert text.startswith(f"{ANN}\n{' '.join(map(str, groups))}\n{account.pw_dir}\n")
    assert text.endswith("no\n")
    with root.box() as box:
        assert box.about().role == "admin"
        number = submitted(box, "id", "-un")
        box.wait(number)
        assert box.log(number).text == f"{pwd.getpwuid(0).pw_name}\n"


@needs_root
def test_nobody_sees_or_touches_the_jobs_of_others(root: Process) -> None:
    with as_user(ANN, root) as ann, as_user(BOB, root) as bob, root.box() as admin:
        number = submitted(ann, "sh", "-c", "echo private; sleep 600", environment={"PLAN": "x"})
        until(lambda: ann.log(number).text)
        for verb in (bob.log, bob.cancel, bob.hold, bob.requeue):
            with pytest.raises(UserError, match=f"belongs to {ANN}, and you are {BOB}"):
                verb(number)
        seen = bob.show(number)
        assert (seen.job.command, seen.environment, seen.directory) == ((), (), "")
        folder = root.folder / "attempts" / f"{number}-1"
        with being(BOB):
            for path in (root.folder, root.folder / "attempts", folder):
                with pytest.raises(PermissionError):
                    os.listdir(path)
            for name in ("log", "launch.json", "state.json"):
                with pytest.raises(PermissionError):
                    (folder / name).read_text()
            with pytest.raises(PermissionError):
                (root.folder / "dovetail.db").read_bytes()
        assert admin.log(number).text == "private\n"
        ann.cancel(number)
        assert ann.wait(number).state == "cancelled"
        with pytest.raises(UserError, match="only an admin may do this"):
            bob.end()
        with pytest.raises(UserError, match="only an admin may do this"):
            bob.drain(admin.nodes()[0].name)


@needs_root
def test_people_make_tokens_for_themselves_alone(root: Process) -> None:
    with as_user(ANN, root) as ann:
        assert ann.make_token(role="reader").startswith("dt_")
        for wish in ({"owner": "root"}, {"owner": BOB}, {"role": "admin"}):
            with pytest.raises(UserError, match="only an admin makes tokens"):
                ann.make_token(**wish)


@needs_root
def test_who_has_no_account_can_look_and_not_run(root: Process) -> None:
    with root.box() as admin:
        admin.make_token(owner="no-such-person")
    stranger = 54321
    os.seteuid(stranger)
    try:
        with connect(root.folder) as box:
            assert (box.about().you, box.about().role) == (str(stranger), "user")
            with pytest.raises(UserError, match=f"no account named '{stranger}' on this machine"):
                submitted(box, "true")
    finally:
        os.seteuid(0)


def test_a_controller_of_a_user_refuses_other_users(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'base.db'}")
    try:
        tokens = Tokens(store)
        keeper = Doorkeeper(tokens, lambda: 100.0, frozenset({BOB}), uid=54321)
        assert keeper.recognise(54321, None).role is Role.ADMIN
        assert keeper.recognise(0, None).role is Role.ADMIN
        assert keeper.recognise(pwd.getpwnam(BOB).pw_uid, None).role is Role.ADMIN
        with pytest.raises(Refused, match="this controller belongs to 54321") as refused:
            keeper.recognise(pwd.getpwnam(ANN).pw_uid, None)
        assert refused.value.code == 403
        text = tokens.make("ann", "user", 50.0, 100.0)
        assert keeper.recognise(None, f"Bearer {text}").name == "ann"
        assert keeper.recognise(pwd.getpwnam(ANN).pw_uid, f"bearer {text}").name == "ann"
        with pytest.raises(Refused, match="a token is needed"):
            keeper.recognise(None, None)
    finally:
        store.close()


@needs_root
def test_folders_and_files_are_closed(root: Process) -> None:
    with root.box() as box:
        number = submitted(box, "true")
        box.wait(number)
    modes = {path.name: path.stat().st_mode & 0o777 for path in root.folder.iterdir()}
    assert root.folder.stat().st_mode & 0o777 == 0o711
    assert modes["socket"] == 0o666
    assert modes["dovetail.db"] == modes["dovetail.db.lock"] == 0o600
    assert modes["attempts"] in (0o700, 0o711)
    folder = root.folder / "attempts" / f"{number}-1"
    assert (folder / "launch.json").stat().st_mode & 0o777 == 0o600
