"""Who is let in: tokens and roles, what browsers send, large bodies, and people who dawdle."""

from __future__ import annotations

import json
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from shutil import which

import httpx
import pytest
from hosting import PATIENCE, Hosted, until

from dovetail.controller.api import peers
from dovetail.controller.api.listening import Listening, is_loopback
from dovetail.controller.api.service import Limits
from dovetail.controller.timebase import MachineClock
from dovetail.live import Box, connect
from dovetail.model.errors import UserError

WRONG = [
    None,
    "",
    "Basic cm9vdDpyb290",
    "Bearer",
    "Bearer dt",
    "Bearer dt__",
    "Bearer dt_00000000_00",
    "Bearer xx_00000000_00",
    "Bearer " + "x" * 5000,
    "Bearer dt_%00_\u00e9".encode().decode("latin-1"),
]


@pytest.mark.parametrize("header", WRONG)
def test_wrong_tokens_open_nothing(host: Hosted, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    with host.client() as client:
        for method, path in (
            ("GET", "/about"),
            ("GET", "/openapi.json"),
            ("POST", "/jobs"),
            ("POST", "/end"),
            ("GET", "/no/such/path"),
        ):
            answer = client.request(method, path, headers=headers)
            assert answer.status_code == 401, path
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert answer.json()["error"]


def test_half_a_token_opens_nothing(host: Hosted) -> None:
    text = host.token()
    for wrong in (text[:-1], text + "0", text.upper(), text[3:], text.rpartition("_")[0]):
        with host.client(wrong) as client:
            assert client.get("/about").status_code == 401, wrong
    with host.client(text) as client:
        assert client.get("/about").status_code == 200


def test_tokens_expire(host: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    text = host.token(lasts=600.0)
    with host.client(text) as client:
        assert client.get("/about").status_code == 200
        now = MachineClock.wall
        monkeypatch.setattr(MachineClock, "wall", lambda clock: now(clock) + 601.0)
        answer = client.get("/about")
    assert (answer.status_code, answer.json()["error"].split(";")[0]) == (
        401,
        "this token has expired",
    )


def test_a_wrong_token_is_not_helped_by_the_socket(host: Hosted) -> None:
    transport = httpx.HTTPTransport(uds=str(host.folder / "socket"))
    with httpx.Client(transport=transport, base_url="http://dovetail", timeout=PATIENCE) as client:
        assert client.get("/v1/about").status_code == 200
        answer = client.get("/v1/about", headers={"Authorization": "Bearer dt_1_2"})
        assert answer.status_code == 401


def test_tokens_are_stored_as_hashes_in_a_closed_file(host: Hosted) -> None:
    text = host.token()
    secret = text.rpartition("_")[2]
    for file in host.folder.glob("dovetail.db*"):
        assert file.stat().st_mode & 0o077 == 0, file
        assert secret.encode() not in file.read_bytes()
    with sqlite3.connect(host.folder / "dovetail.db") as base:
        [(stored,)] = base.execute("select hash from tokens").fetchall()
    assert len(stored) == 64
    base.close()


CHANGES: list[tuple[str, str, object]] = [
    ("POST", "/jobs", {"tasks": [{"command": ["true"]}]}),
    ("POST", "/jobs/forecast", {"command": ["true"]}),
    ("POST", "/jobs/1/cancel", None),
    ("POST", "/jobs/1/hold", None),
    ("POST", "/jobs/1/release", None),
    ("POST", "/jobs/1/requeue", None),
    ("GET", "/jobs/1/log", None),
    ("POST", "/tokens", {}),
    ("GET", "/tokens", None),
    ("DELETE", "/tokens/00000000", None),
]
FOR_ADMINS: list[tuple[str, str, object]] = [
    ("POST", "/nodes/x/drain", None),
    ("POST", "/nodes/x/undrain", None),
    ("POST", "/end", None),
]
LOOKS = ["/about", "/jobs", "/jobs/1", "/jobs/1/members", "/history", "/nodes", "/usage"]


def test_a_reader_only_looks(host: Hosted, box: Box) -> None:
    box.submit(["true"], held=True)
    with host.client(host.token("reader")) as client:
        for method, path, body in [*CHANGES, *FOR_ADMINS]:
            assert client.request(method, path, json=body).status_code == 403, path
        for path in LOOKS:
            assert client.get(path).status_code == 200, path


def test_a_user_is_no_admin(host: Hosted, box: Box) -> None:
    with host.client(host.token("user", "ann")) as client:
        for method, path, body in FOR_ADMINS:
            assert client.request(method, path, json=body).status_code == 403, path
        for wish in ({"owner": "bob"}, {"role": "admin"}, {}):
            answer = client.post("/tokens", json=wish)
            assert answer.status_code == 403, "a token breeds no tokens"
    assert len(box.tokens()) == 1


def test_users_touch_only_their_own(host: Hosted) -> None:
    with host.remote("user", "ann") as ann, host.remote("user", "bob") as bob:
        number = ann.submit(["echo", "private"], held=True, environment={"PLAN": "world"})
        for verb in (bob.log, bob.cancel, bob.hold, bob.release, bob.requeue):
            with pytest.raises(UserError, match=f"job {number} belongs to ann, and you are bob"):
                verb(number)
        seen = bob.show(number)
        assert (seen.job.owner, seen.job.command) == ("ann", ())
        assert (seen.environment, seen.directory, seen.runs) == ((), "", ())
        assert bob.queue()[0].command == bob.members(number)[0].command == ()
        assert ann.show(number).job.command == ("echo", "private")
        assert ("PLAN", "world") in ann.show(number).environment
        ann.release(number)
        ann.wait(number)
        assert bob.history()[0].command == ()
        with pytest.raises(UserError, match="belongs to ann"):
            bob.log(number)


def test_how_a_job_failed_is_nobody_elses_business(host: Hosted) -> None:
    with host.remote("user", "ann") as ann, host.remote("user", "bob") as bob:
        number = ann.submit(["/home/ann/private-name"])
        assert "private-name" in ann.wait(number).reason
        assert bob.show(number).job.reason == bob.history()[0].reason == ""


def test_tokens_of_others_are_not_seen_or_revoked(host: Hosted, box: Box) -> None:
    host.token("user", "bob")
    with host.remote("user", "ann") as ann:
        assert {token.owner for token in ann.tokens()} == {"ann"}
        theirs = next(token for token in box.tokens() if token.owner == "bob")
        with pytest.raises(UserError, match="belongs to somebody else"):
            ann.revoke(theirs.id)
        ann.revoke(ann.tokens()[0].id)
        with pytest.raises(UserError, match="was revoked"):
            ann.tokens()


# ---- browsers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": ""},
        {"Host": "["},
    ],
)
def test_web_pages_of_elsewhere_are_refused(host: Hosted, headers: dict[str, str]) -> None:
    with host.client(host.token()) as client:
        assert client.get("/about", headers=headers).status_code == 403
        assert client.post("/end", headers=headers).status_code == 403


def test_no_page_may_read_answers_and_no_cookie_is_set(host: Hosted) -> None:
    with host.client(host.token()) as client:
        for name in ("localhost", "[::1]", f"127.0.0.1:{host.port}"):
            assert client.get("/about", headers={"Host": name}).status_code == 200
        answer = client.get("/about")
        asked = client.options("/jobs", headers={"Access-Control-Request-Method": "POST"})
    for each in (answer, asked):
        assert not [name for name in each.headers if name.startswith("access-control")]
        assert "set-cookie" not in each.headers
    assert asked.status_code == 405


# ---- large and slow ---------------------------------------------------------------------------


def test_ten_megabytes_are_too_large_however_they_are_sent(host: Hosted) -> None:
    def pieces() -> object:
        for _ in range(10):
            yield b" " * 1_000_000

    with host.client(host.token()) as client:
        for body in (b" " * 10_000_000, pieces()):
            answer = client.post("/jobs", content=body)  # type: ignore[arg-type]
            assert (answer.status_code, answer.json()) == (
                413,
                {"error": "a request has at most 8 MiB"},
            )
        assert client.get("/about").status_code == 200


def test_nobody_unknown_makes_us_read_a_body(host: Hosted) -> None:
    with socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE) as line:
        line.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n"
        )
        assert line.recv(12) == b"HTTP/1.1 401"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"tasks":[]}',
        b"null",
        b"9" * 10_000,
        b'{"tasks":{}}',
    ],
)
def test_bodies_that_make_no_sense_are_one_sentence(host: Hosted, body: bytes) -> None:
    with host.client(host.token()) as client:
        headers = {"Content-Type": "application/json"}
        answer = client.post("/jobs", content=body, headers=headers)
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error"}
    assert "\n" not in answer.json()["error"]


def test_limits_of_the_queue(tmp_path: Path) -> None:
    limits = Limits(queue_per_user=5, queue=8)
    held = {"command": ["true"], "held": True}
    with Hosted(tmp_path / "data", limits=limits) as host, host.box() as box:
        box.submit_all([held] * 5)
        with pytest.raises(UserError, match="the queue is full: 5 of your jobs") as caught:
            box.submit(["true"])
        assert caught.value.code == 429  # type: ignore[attr-defined]
        with host.remote("user", "ann") as ann:
            with pytest.raises(UserError, match="the queue is full"):
                ann.submit(["true"], array="4")
            ann.submit_all([held] * 3)
            with pytest.raises(UserError, match="the queue is full"):
                ann.submit(["true"])
        box.cancel(1)
        box.submit(["true"], held=True)


def test_tasks_that_are_too_many_or_too_long(host: Hosted) -> None:
    plain = {"command": ["true"]}
    wrong: list[dict[str, object]] = [
        {"tasks": [plain] * 10_001},
        {"tasks": [{"command": ["x"] * 5000}]},
        {"tasks": [{"command": ["x" * 200_000]}]},
        {"tasks": [{"command": ["é" * 100_000]}]},
        {"tasks": [{**plain, "array": "0-10000"}]},
        {"tasks": [{**plain, "sweep": {"a": list(range(101)), "b": list(range(100))}}]},
        {"tasks": [{**plain, "name": "x" * 201}]},
        {"tasks": [{**plain, "environment": {"A=B": "c"}}]},
        {"tasks": [{**plain, "environment": {"A": "\0"}}]},
        {"tasks": [{**plain, "command": ["\ud800"]}]},
    ]
    with host.client(host.token()) as client:
        for body in wrong:
            answer = client.post("/jobs", content=json.dumps(body))
            assert answer.status_code in (400, 422), answer.text
        assert client.get("/jobs").json()["total"] == 0


def test_waiting_for_too_many_is_refused(host: Hosted, box: Box) -> None:
    array = box.submit(["true"], array="400", held=True)
    with pytest.raises(UserError, match="300 jobs that wait for 400 others are too many"):
        box.submit(["true"], array="300", after=[array])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PATIENCE", 1.0)


SILENT: dict[str, Callable[[str], list[bytes]]] = {
    "says nothing": lambda _: [],
    "begins": lambda _: [b"GET /v1/ab"],
    "drips a head": lambda _: [b"GET /v1/about HTTP/1.1\r\n", *[b"X: y\r\n"] * 1000],
    "drips after an answer": lambda token: [
        b"GET /v1/about HTTP/1.1\r\nHost: localhost\r\n",
        f"Authorization: Bearer {token}\r\n\r\n".encode(),
        *[b"G"] * 1000,
    ],
    "drips a body nobody wants": lambda _: [
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
        *[b"x"] * 1000,
    ],
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("manner", SILENT)
def test_who_does_not_come_to_the_point_is_hung_up_on(host: Hosted, manner: str) -> None:
    pieces = SILENT[manner](host.token())
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE) as line:
        line.settimeout(0.1)
        try:
            while time.monotonic() - begun < PATIENCE:
                if pieces:
                    line.sendall(pieces.pop(0))
                try:
                    if not line.recv(65536):
                        break
                except TimeoutError:
                    continue
        except ConnectionError:
            pass
    assert 0.8 < time.monotonic() - begun < PATIENCE


def test_a_body_that_drips_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.controller.api.door.Door.__init__.__defaults__", (8 << 20, 0.5))
    with Hosted(tmp_path / "data") as host:
        head = f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {host.token()}"
        with socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE) as line:
            line.sendall(f"{head}\r\nContent-Length: 100\r\n\r\n{{".encode())
            assert line.recv(12) == b"HTTP/1.1 408"


@pytest.mark.usefixtures("impatient")
def test_a_thousand_silent_connections_keep_nobody_out(host: Hosted, box: Box) -> None:
    with host.client(host.token()) as client, ExitStack() as stack:
        lines = [
            stack.enter_context(socket.create_connection(("127.0.0.1", host.port)))
            for _ in range(1000)
        ]
        for _ in range(5):
            assert client.get("/about").status_code == 200
        number = box.submit(["true"])
        assert box.wait(number, PATIENCE).state == "done"
        for line in lines:
            line.settimeout(PATIENCE)
            assert line.recv(1) == b"", "it was closed"


def test_many_who_wait_do_not_stop_the_rest(host: Hosted, box: Box) -> None:
    number = box.submit(["sleep", "1"])
    states: list[str] = []

    def wait() -> None:
        with host.box() as mine:
            states.append(mine.wait(number).state)

    threads = [threading.Thread(target=wait) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert box.wait(box.submit(["true"])).state == "done"
    for thread in threads:
        thread.join(PATIENCE)
    assert states == ["done"] * 20


# ---- where we listen --------------------------------------------------------------------------


def test_away_from_loopback_only_with_tls(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", ""):
        with pytest.raises(UserError, match="is not loopback: give --tls-cert"):
            Listening(tmp_path, port=0, host=host).check()
    Listening(tmp_path, host="0.0.0.0").check()
    with pytest.raises(UserError, match="there is no such file"):
        Listening(tmp_path, port=0, host="0.0.0.0", certificate=tmp_path / "none").check()
    assert [is_loopback(name) for name in ("127.0.0.2", "::1", "localhost", "localhost.x")] == [
        True,
        True,
        True,
        False,
    ]


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A self-signed one for this machine."""
    if which("openssl") is None:
        pytest.skip("openssl is not installed")
    found, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=box"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", found]
    subprocess.run(["openssl", *words, *map(str, names)], check=True, capture_output=True)
    return found, key


def test_tls_with_a_certificate_of_our_own(
    tmp_path: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, key = certificate
    with Hosted(tmp_path / "data", host="0.0.0.0", certificate=found, key=key) as host:
        url, token = f"https://127.0.0.1:{host.port}", host.token()
        untrusting = pytest.raises(UserError, match="certificate is not trusted here")
        with connect(url=url, token=token) as box, untrusting:
            box.about()
        monkeypatch.setenv("SSL_CERT_FILE", str(found))
        with connect(url=url, token=token) as box:
            assert box.about().you == "ann"
        with socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE) as line:
            line.sendall(b"GET /v1/about HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not line.recv(100).startswith(b"HTTP"), "nothing is said without TLS"


def test_a_broken_certificate_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "cert.pem"
    broken.write_text("nothing")
    with pytest.raises(UserError, match=r"cert\.pem: cannot be used as a certificate"):
        Hosted(tmp_path / "data", certificate=broken).__enter__()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    with pytest.raises(UserError, match="SSL_CERT_FILE: cannot be read"):
        connect(url="https://localhost:1", token="t")


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path, host: Hosted) -> None:
    with pytest.raises(UserError, match=r"cannot be used .*; choose another --port"):
        Hosted(tmp_path / "other", port=host.port).__enter__()


# ---- questions --------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["{}:Evil", "fifo:order={}:Evil", "synergy:order={}:Evil"])
def test_no_question_runs_code_from_a_file(host: Hosted, tmp_path: Path, policy: str) -> None:
    evil, sign = tmp_path / "evil.py", tmp_path / "sign"
    evil.write_text(f"open({str(sign)!r}, 'w')\nclass Evil: pass\n")
    for role in ("reader", "user", "admin"):
        with host.client(host.token(role)) as client:
            for text in (policy.format(evil), policy.format(evil.relative_to("/"))):
                answer = client.post("/what-if", json={"policy": text})
                assert answer.status_code == 422, answer.text
    assert not sign.exists()


def test_no_screen_tells_others_how_a_job_failed(host: Hosted) -> None:
    with host.remote("user", "ann") as ann, host.client(host.token("user", "bob")) as bob:
        gone = ann.submit(["/home/ann/private-name"])
        ann.wait(gone)
        number = ann.submit(["/home/ann/private-name"], retries=1000)
        until(lambda: ann.show(number).job.failures)
        for path in (
            f"/jobs/{gone}/why",
            f"/jobs/{number}/why",
            f"/reasons?jobs={number}",
            "/board",
            "/jobs?reasons=true",
            "/history",
        ):
            answer = bob.get(path)
            assert answer.status_code == 200, path
            assert "private-name" not in answer.text, path
