"""The live feed: who listens hears everything that changes, and holds nobody up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from hosting import PATIENCE, told_by, until
from served import Served, real
from staging import Stage

from dovetail.controller.api import feed as feeding
from dovetail.controller.api.feed import MOST_EACH, Feed
from dovetail.controller.api.people import Doorkeeper
from dovetail.controller.api.refusing import Refused
from dovetail.controller.api.service import Service
from dovetail.controller.api.streaming import Streaming
from dovetail.controller.board import MOST
from dovetail.controller.commands import Cancel, Hold, Submit
from dovetail.controller.submission import Submission
from dovetail.controller.tokens import Tokens
from dovetail.model.request import gang

News = tuple[str, dict[str, Any]]


@contextmanager
def listening(served: Served) -> Iterator[Iterator[News]]:
    url = f"{served.url}v1/events"
    with httpx.stream("GET", url, headers=served.headers, timeout=PATIENCE) as answer:
        answer.raise_for_status()
        yield _messages(answer)


def _messages(answer: httpx.Response) -> Iterator[News]:
    kind = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def test_who_listens_hears_a_job_from_its_submission_to_its_end(box, tmp_path):
    with listening(box) as news:
        assert next(news)[0] == "hello"
        number = box.box.submit(["sh", "-c", told_by(tmp_path / "on")], gpus=1, name="short")
        states = []
        for kind, told in news:
            if kind != "changes":
                continue
            states += [job["state"] for job in told["jobs"] if job["id"] == number]
            states += [job["state"] for job in told["ended"] if job["id"] == number]
            if states[-1:] == ["running"]:
                (tmp_path / "on").touch()
            elif states[-1:] == ["done"]:
                break
    assert states == ["starting", "running", "done"]


def test_the_board_and_the_changes_since_give_the_board_as_it_is_now(box):
    with listening(box) as news:
        next(news)
        before = box.ask("board")
        numbers = [box.box.submit(["sleep", "600"], gpus=gpus) for gpus in (2, 1, 4, 1)]
        box.box.cancel(numbers[0])
        box.box.wait(numbers[0], PATIENCE)
        jobs = {job["id"]: job for job in before["jobs"]}
        for kind, told in news:
            if kind != "changes" or told["sequence"] <= before["sequence"]:
                continue
            jobs |= {job["id"]: job for job in told["jobs"]}
            for gone in told["ended"]:
                jobs.pop(gone["id"], None)
            if numbers[0] not in jobs and all(
                jobs.get(number, {}).get("state") == "running" for number in (numbers[1],)
            ):
                now = box.ask("board")
                if told["sequence"] == now["sequence"]:
                    break
    assert list(jobs.values()) == now["jobs"]
    for number in numbers[1:]:
        box.box.cancel(number)


def test_reasons_are_told_for_the_jobs_that_are_asked_about(box):
    holder = box.box.submit(["sleep", "600"], gpus=4)
    waiter = box.box.submit(["sleep", "1"], gpus=4)
    said = box.ask("reasons", jobs=f"{waiter},999999")
    assert list(said) == [str(waiter)]
    assert "GPU" in said[str(waiter)]
    for number in (waiter, holder):
        box.box.cancel(number)


@pytest.mark.parametrize("path", ["events", "board", "series", "measured", "policy", "reasons"])
def test_nothing_is_told_without_a_token(box, path):
    answer = httpx.get(
        f"{box.url}v1/{path}", params={"jobs": "1"} if path == "reasons" else {}, timeout=PATIENCE
    )
    assert answer.status_code == 401


def test_the_stream_ends_with_the_controller(tmp_path):
    with real(tmp_path / "data") as served, listening(served) as news:
        next(news)
        served.box.end()
        assert [kind for kind, _ in news if kind == "changes"] == []


def service_on(stage: Stage) -> Service:
    assert stage.site.store is not None
    return Service(stage.controller, Tokens(stage.site.store), "fifo")


def feed_of(service: Service) -> Feed:
    return Feed(service, Doorkeeper(service.tokens, service.wall))


def test_who_does_not_keep_up_is_dropped(stage, monkeypatch):
    monkeypatch.setattr(feeding, "MOST_BEHIND", 3)
    feed = feed_of(service_on(stage))
    slow, quick = feeding.Listener("ann"), feeding.Listener("ann")
    feed.listeners |= {slow, quick}

    async def stream() -> list[bytes]:
        return [said async for said in feed.stream(None, slow)]  # type: ignore[arg-type]

    for number in range(5):
        feed.tell("sample", {"number": number})
        quick.take()
    assert not quick.lost
    assert len(asyncio.run(stream())) == 1  # the greeting
    assert feed.listeners == {quick}


def test_who_stops_reading_holds_nobody_else_up(stage):
    feed = feed_of(service_on(stage))
    heard: list[bytes] = []

    def reader(stuck: bool) -> Any:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                await asyncio.sleep(60 if stuck else 0)
                heard.append(message["body"])

        return send

    async def receive() -> Any:
        await asyncio.sleep(60)

    async def tell() -> None:
        both = [
            asyncio.create_task(
                Streaming(feed.stream(None, feed.admit(name)), patience=0.5)({}, receive, send)  # type: ignore[arg-type]
            )
            for name, send in (("slow", reader(True)), ("quick", reader(False)))
        ]
        for number in range(20):
            await asyncio.sleep(0.02)
            feed.tell("sample", {"number": number})
            feed._service.bell.ring()
        while not both[0].done() or b'"number":19}' not in b"".join(heard):
            await asyncio.sleep(0.02)
        assert not both[1].done()
        assert [listener.name for listener in feed.listeners] == ["quick"]
        both[1].cancel()
        await asyncio.gather(*both, return_exceptions=True)

    asyncio.run(asyncio.wait_for(tell(), PATIENCE))
    assert [b'"number":%d}' % number in b"".join(heard) for number in range(20)] == [True] * 20


def test_one_person_cannot_take_all_places(box):
    ann, bob = (
        {"Authorization": f"Bearer {box.box.make_token(owner=name, role='reader')}"}
        for name in ("ann", "bob")
    )
    url = f"{box.url}v1/events"
    with ExitStack() as open_pages, httpx.Client(timeout=PATIENCE) as client:
        pages = []
        for _ in range(MOST_EACH):
            page = open_pages.enter_context(client.stream("GET", url, headers=ann))
            pages.append(page.iter_bytes())
            next(pages[-1])
        refused = client.get(url, headers=ann)
        assert refused.status_code == 429
        assert refused.json() == {"error": "20 pages of ann listen already; close one of them"}
        assert int(refused.headers["Retry-After"]) > 0
        with client.stream("GET", url, headers=bob) as other:
            assert other.status_code == 200

    def admitted() -> bool:
        with httpx.stream("GET", url, headers=ann, timeout=PATIENCE) as answer:
            return answer.status_code == 200

    # Places become free when pages are closed, as soon as that is noticed.
    until(admitted)


def test_a_full_house_is_told_in_one_sentence(stage, monkeypatch):
    monkeypatch.setattr(feeding, "MOST_LISTENERS", 3)
    feed = feed_of(service_on(stage))
    for name in ("ann", "bob", "cho"):
        feed.admit(name)
    with pytest.raises(Refused, match="3 pages listen already; try again") as refused:
        feed.admit("dan")
    assert refused.value.answer().headers["Retry-After"] == "15"


def test_who_stops_reading_is_let_go_of(stage):
    feed = feed_of(service_on(stage))
    listener = feeding.Listener("ann")
    feed.listeners.add(listener)
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])
        if len(sent) > 1:
            await asyncio.sleep(60)

    async def receive() -> Any:
        await asyncio.sleep(60)

    response = Streaming(feed.stream(None, listener), patience=0.05)  # type: ignore[arg-type]

    async def tell() -> set[feeding.Listener]:
        await response({}, receive, send)
        return set(feed.listeners)

    assert asyncio.run(asyncio.wait_for(tell(), 10)) == set()
    assert sent == ["http.response.start", "http.response.body"]


def test_nothing_is_made_while_nobody_listens(stage, monkeypatch):
    made = []
    service = service_on(stage)
    feed = feed_of(service)
    service.readers.append(feed.written)
    monkeypatch.setattr(feeding, "_message", lambda *said: made.append(said))
    stage.submit()
    assert feed.sequence > 0
    assert made == []


def test_a_job_that_waits_for_another_is_shown_though_nothing_is_decided(stage):
    service = service_on(stage)
    feed = feed_of(service)
    service.readers.append(feed.written)
    first = stage.submit(length=50)
    listener = feeding.Listener("ann")
    feed.listeners.add(listener)
    second = stage.submit(length=5, after=(first,))
    stage.ask(Hold((second,)))
    stage.ask(Cancel((second,)))
    told = [json.loads(message.split(b"data: ")[1]) for message in listener.queue]
    states = [row["state"] for news in told for row in (*news["jobs"], *news["ended"])]
    assert states == ["waiting", "held", "cancelled"]


def test_a_flood_of_changes_is_told_as_one_word(stage):
    service = service_on(stage)
    feed = feed_of(service)
    service.readers.append(feed.written)
    listener = feeding.Listener("ann")
    feed.listeners.add(listener)
    many = [Submission(("train",), gang(4), estimate=9.0) for _ in range(MOST + 1)]
    for number in range(1, len(many) + 1):
        stage.know(number, 4, 9.0)
    stage.ask(Submit(tuple(many)))
    (message,) = listener.queue
    assert b'"reload":true' in message
    assert len(message) < 200
