"""Around the controller: figures for Prometheus, and other programs that are told of changes."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from hosting import PATIENCE, told_by, until
from prometheus_client.parser import text_string_to_metric_families
from served import real

from dovetail.controller import webhooks
from dovetail.controller.commands import Cancel, Hold
from dovetail.controller.webhooks import Webhook, checked, read_secret, signature
from dovetail.model.errors import UserError

GRAFANA = Path(__file__).parents[2] / "packaging" / "grafana" / "dovetail.json"


def families(box: Any) -> dict[str, Any]:
    answer = httpx.get(f"{box.url}metrics", headers=box.headers, timeout=PATIENCE)
    assert answer.status_code == 200
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def test_figures_need_a_token_and_have_a_help_text_each(box):
    assert httpx.get(f"{box.url}metrics", timeout=PATIENCE).status_code == 401
    found = families(box)
    assert all(family.documentation for family in found.values())
    assert found["dovetail_gpus"].samples[0].value == 4


def test_figures_follow_what_happens(box):
    before = families(box)
    number = box.box.submit(["sleep", "0.2"], gpus=1)
    box.box.wait(number, PATIENCE)
    after = families(box)

    def grew(name: str, **labels: str) -> float:
        counts = [
            sum(
                sample.value
                for sample in found[name].samples
                if sample.name.endswith(("_total", "_count"))
                and labels.items() <= sample.labels.items()
            )
            for found in (before, after)
        ]
        return counts[1] - counts[0]

    assert grew("dovetail_jobs_submitted") == 1
    assert grew("dovetail_jobs_ended", state="done") == 1
    assert grew("dovetail_actions", kind="start") == 1
    assert grew("dovetail_wait_seconds") == 1
    assert grew("dovetail_decisions") >= 3


def test_the_grafana_board_asks_only_for_figures_there_are(box):
    named = set(re.findall(r"dovetail_\w+", GRAFANA.read_text()))
    assert len(named) > 8
    box.box.apply_tenants('[[tenants]]\nname = "lab"\ngpus = 2\n')
    found = families(box)
    box.box.apply_tenants("", "none")
    assert named <= {name for family in found.values() for name in _names(family)}
    (owned,) = found["dovetail_tenant_gpus"].samples
    assert (owned.labels, owned.value) == ({"tenant": "lab"}, 2)


def _names(family: Any) -> set[str]:
    return {family.name, f"{family.name}_bucket", *(sample.name for sample in family.samples)} | {
        f"{family.name}_total"
    }


class Receiver:
    """A program that is told; it can be told to refuse."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.codes: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = receiver.codes.pop(0) if receiver.codes else 200
                receiver.got.append((dict(self.headers), body))
                self.send_response(code)
                self.end_headers()

            def log_message(self, *said: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def changes(self) -> list[dict[str, Any]]:
        return [change for _, body in self.got for change in json.loads(body)["changes"]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def test_another_program_is_told_of_every_state_of_a_job_and_can_check_who_says_so(
    receiver, tmp_path
):
    secret = tmp_path / "secret"
    with real(
        tmp_path / "data", "--webhook", receiver.url, "--webhook-secret", str(secret)
    ) as served:
        go = tmp_path / "go"
        number = served.box.submit(["sh", "-c", told_by(go)], gpus=1, name="told")
        until(lambda: any(change["state"] == "running" for change in receiver.changes()))
        go.touch()
        until(lambda: any(change["state"] == "done" for change in receiver.changes()))
    states = [change["state"] for change in receiver.changes() if change["job"] == number]
    assert states == ["waiting", "starting", "running", "done"]
    assert {change["name"] for change in receiver.changes()} == {"told"}
    assert secret.stat().st_mode & 0o077 == 0
    for headers, body in receiver.got:
        moment, proof = re.fullmatch(r"t=(\d+),v1=(\w+)", headers["Dovetail-Signature"]).groups()
        assert proof == signature(read_secret(secret), int(moment), body)


async def deliver(hook: Webhook, seconds: float = PATIENCE) -> None:
    task = asyncio.ensure_future(hook.run())
    until = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.02)
        if not hook.queue and hook.idle:
            break
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def hook(stage, receiver, monkeypatch) -> Webhook:
    monkeypatch.setattr(webhooks, "PAUSES", (0.01,) * 4)
    made = Webhook(stage.controller, receiver.url, b"0123456789abcdef")
    stage.controller.written = made
    return made


def test_a_receiver_that_is_away_for_a_while_misses_nothing(stage, receiver, hook, caplog):
    receiver.codes = [503, 500, 429]
    stage.submit(length=5)
    stage.until(20)
    asyncio.run(deliver(hook))
    assert hook.lost == 0
    assert caplog.messages == [f"webhook {receiver.url} answers 503 and is tried again"]
    first = {headers["Dovetail-Delivery"] for headers, _ in receiver.got[:4]}
    assert len(first) == 1  # the same delivery, tried again
    told = json.loads(receiver.got[-1][1])["changes"]
    assert [change["state"] for change in told] == ["waiting", "starting", "running", "done"]
    assert [change["was"] for change in told] == ["", "waiting", "starting", "running"]


def test_jobs_the_scheduler_never_heard_of_are_told_of_too(stage, receiver, hook):
    first = stage.submit(length=50)
    second = stage.submit(length=5, after=(first,))
    stage.ask(Hold((second,)))
    stage.ask(Cancel((second,)))
    asyncio.run(deliver(hook))
    told = [change for change in receiver.changes() if change["job"] == second]
    assert [change["state"] for change in told] == ["waiting", "held", "cancelled"]


def test_what_nobody_takes_is_counted_and_the_rest_goes_on(stage, receiver, hook, caplog):
    receiver.codes = [404]
    stage.submit(length=5)
    stage.until(3)
    asyncio.run(deliver(hook))
    assert hook.lost == 3
    said = f"webhook {receiver.url} answers 404: changes that could not be told: 3, in all 3"
    assert caplog.messages == [said]
    assert len(receiver.got) == 1  # a refusal for good is not tried again
    stage.until(20)
    asyncio.run(deliver(hook))
    assert receiver.changes()[-1]["state"] == "done"


def test_a_receiver_that_never_answers_holds_no_decision_up(stage, hook, monkeypatch):
    monkeypatch.setattr(webhooks, "MOST_QUEUED", 5)
    for _ in range(10):
        stage.submit(length=1)
    stage.until(60)
    assert all(stage.state(number) == "done" for number in range(1, 11))
    assert len(hook.queue) == 5
    assert hook.lost == 10 * 4 - 5


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org", "https://", "http://[x"])
def test_an_address_that_is_none_is_refused_in_one_sentence(url):
    with pytest.raises(UserError, match="write an address like"):
        checked(url)


def test_a_secret_that_is_too_short_is_refused(tmp_path):
    (tmp_path / "short").write_text("abc\n")
    with pytest.raises(UserError, match="at least 16"):
        read_secret(tmp_path / "short")
