"""The Python API: every verb on a controller that runs, with jobs that run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from hosting import Hosted, told_by, until

from dovetail.live import ENDED, Box, connect, connection
from dovetail.live.connection import Connection
from dovetail.live.finding import Address
from dovetail.model.errors import UserError


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A line to a controller for many tests: none of them submits anything."""
    with Hosted(tmp_path_factory.mktemp("untouched") / "data") as host, host.box() as box:
        yield box


def running(box: Box, *words: str, **fields: object) -> int:
    """A job that has begun."""
    number = box.submit(words, **fields)
    until(lambda: box.show(number).job.state == "running")
    return number


def test_a_job_runs_and_is_remembered(box: Box) -> None:
    number = box.submit(["echo", "hello"], gpus=1, name="greeting")
    job = box.wait(number)
    assert (job.state, job.code, job.name, job.gpus) == ("done", 0, "greeting", 1.0)
    assert box.log(number).text == "hello\n"
    assert [each.id for each in box.history()] == [number]
    assert box.queue() == []
    assert job.state in ENDED


def test_a_job_has_the_directory_and_environment_of_its_submitter(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLOUR", "green")
    monkeypatch.setenv("DOVETAIL_TOKEN", "dt_not_for_jobs")
    number = box.submit(["sh", "-c", "pwd; echo $COLOUR $SHAPE [$DOVETAIL_TOKEN]"], gpus=1)
    box.wait(number)
    assert box.log(number).text == f"{tmp_path}\ngreen []\n"
    again = box.submit(["sh", "-c", "echo $COLOUR $SHAPE"], environment={"SHAPE": "round"})
    box.wait(again)
    assert box.log(again).text == "green round\n"
    assert box.show(again).directory == str(tmp_path)


def test_a_failure_says_how(box: Box) -> None:
    job = box.wait(box.submit(["sh", "-c", "exit 7"]))
    assert (job.state, job.code, job.reason) == ("failed", 7, "exit code 7")
    killed = box.wait(box.submit(["sh", "-c", "kill -9 $$"]))
    assert (killed.state, killed.signal) == ("failed", 9)


def test_a_failed_job_is_tried_again_and_both_logs_are_followed(box: Box, tmp_path: Path) -> None:
    script = "echo try $DOVETAIL_ATTEMPT; test $DOVETAIL_ATTEMPT = 3"
    number = box.submit(["sh", "-c", script], retries=3)
    assert "".join(box.follow(number, pace=0.02)) == "try 1\ntry 2\ntry 3\n"
    detail = box.show(number)
    assert detail.job.state == "done"
    assert [run.outcome for run in detail.runs] == ["exit code 1", "exit code 1", "exit code 0"]
    assert box.log(number, attempt=2).text == "try 2\n"
    with pytest.raises(UserError, match="there is no number 4"):
        box.log(number, attempt=4)


def test_waiting_gives_up_after_a_while(box: Box) -> None:
    number = running(box, "sleep", "600")
    assert box.wait(number, seconds=0.1).state == "running"
    box.cancel(number)
    assert box.wait(number).state == "cancelled"


def test_jobs_wait_for_others_and_say_so(box: Box) -> None:
    first = running(box, "sleep", "600", gpus=4, name="long")
    second = box.submit(["true"], gpus=1)
    told = box.show(second).job
    assert told.state == "waiting"
    assert first in told.blockers
    [listed] = box.queue(state="waiting", reasons=True)
    assert listed.reason == told.reason != ""
    box.cancel(first)
    assert box.wait(second).state == "done"


def test_after_runs_in_order_and_falls_with_what_it_waits_for(box: Box, tmp_path: Path) -> None:
    first = box.submit(["sh", "-c", told_by(tmp_path / "on")])
    second = box.submit(["true"], after=[first])
    assert "waits for job 1 to be done" in box.show(second).job.reason
    (tmp_path / "on").touch()
    assert box.wait(second).started >= box.show(first).job.ended
    broken = box.submit(["sh", "-c", f"{told_by(tmp_path / 'off')}; false"])
    third = box.submit(["true"], after=[broken])
    fourth = box.submit(["true"], after=[broken], after_any=True)
    (tmp_path / "off").touch()
    assert box.wait(third).state == "cancelled"
    assert box.wait(fourth).state == "done"


def test_after_an_array_is_after_all_its_members(box: Box, tmp_path: Path) -> None:
    array = box.submit(["sh", "-c", told_by(tmp_path / "on")], array="1-3")
    last = box.submit(["true"], after=[array])
    only = box.submit(["true"], after=[f"{array}.1"])
    assert box.show(last).job.after == tuple(job.id for job in box.members(array))
    assert box.show(only).job.after == (box.show(f"{array}.1").job.id,)
    (tmp_path / "on").touch()
    assert box.wait(last).state == "done"


def test_an_array_is_one_object(box: Box) -> None:
    words = ["sh", "-c", "echo {index} $DOVETAIL_ARRAY_INDEX; sleep 600"]
    # So little that all of them run at once on any machine.
    array = box.submit(words, array="1,3,5", cpus=0.1)
    members = box.members(array)
    assert [(job.array, job.index) for job in members] == [(array, 1), (array, 3), (array, 5)]
    until(lambda: box.log(f"{array}.3").text == "3 3\n")
    assert box.show(f"{array}.5").job.id == members[2].id
    with pytest.raises(UserError, match=r"there is no job 1\.2"):
        box.show(f"{array}.2")
    with pytest.raises(UserError, match=r"1 is an array of 3 jobs; name one of them: 1\.0"):
        box.log(array)
    assert box.cancel(array).jobs == tuple(job.id for job in members)
    assert {box.wait(job.id).state for job in members} == {"cancelled"}
    with pytest.raises(UserError, match="all jobs of 1 have ended already"):
        box.cancel(array)


def test_an_array_is_held_released_and_run_again(box: Box) -> None:
    array = box.submit(["true"], array="2", held=True)
    assert {job.state for job in box.members(array)} == {"held"}
    box.release(array)
    members = [job.id for job in box.members(array)]
    assert [box.wait(job).state for job in members] == ["done", "done"]
    told = box.requeue(array)
    assert told.jobs == tuple(members)
    assert [box.wait(job).state for job in told.new] == ["done", "done"]
    assert box.show(f"{array}.1").job.id == told.new[1]


def test_a_sweep_fills_in_its_values(box: Box) -> None:
    array = box.submit(
        ["sh", "-c", "echo {lr} {size} {index} $LR $SIZE"],
        sweep={"lr": [0.1, 0.01], "size": ["small", 2]},
    )
    members = box.members(array)
    texts = [(box.wait(job.id), box.log(job.id).text)[1] for job in members]
    assert texts == [
        "0.1 small 0 0.1 small\n",
        "0.1 2 1 0.1 2\n",
        "0.01 small 2 0.01 small\n",
        "0.01 2 3 0.01 2\n",
    ]


def test_values_of_a_sweep_are_not_filled_in_again(box: Box) -> None:
    array = box.submit(["echo", "{a} {b}"], sweep={"a": ["{b}"], "b": ["{a}"]})
    box.wait(f"{array}.0")
    assert box.log(f"{array}.0").text == "{b} {a}\n"


def test_hold_release_and_requeue(box: Box) -> None:
    number = box.submit(["sleep", "600"], held=True)
    assert box.show(number).job.reason == "its owner holds it"
    box.release(number)
    until(lambda: box.show(number).job.state == "running")
    with pytest.raises(UserError, match="only a waiting job can be held"):
        box.hold(number)
    box.requeue(number)
    until(lambda: box.show(number).job.attempts == 2)
    box.cancel(number)
    box.wait(number)
    with pytest.raises(UserError, match="job 1 has ended already"):
        box.release(number)
    assert box.requeue(number).new == (2,)


def test_the_queue_is_filtered_and_paged(box: Box) -> None:
    box.submit_all([{"command": ["true"], "held": True, "name": f"n{n}"} for n in range(5)])
    assert [job.name for job in box.queue(name="n3")] == ["n3"]
    assert box.queue(owner="nobody") == []
    page = box.page(limit=2)
    assert ([job.id for job in page.jobs], page.total) == ([1, 2], 5)
    assert [job.id for job in box.queue(after=3)] == [4, 5]


def test_long_lists_come_in_pages(box: Box) -> None:
    array = box.submit(["true"], array="2500", held=True)
    assert [job.id for job in box.queue()] == list(range(array + 1, array + 2501))
    assert len(box.members(array)) == 2500
    assert len(box.queue(limit=1700)) == 1700
    box.cancel(array)
    assert len(box.history(limit=None)) == 2500
    assert len({job.id for job in box.history(limit=1200)}) == 1200


def test_all_or_none_are_submitted(box: Box) -> None:
    with pytest.raises(UserError, match="there is no job 99"):
        box.submit_all([{"command": ["true"]}, {"command": ["true"], "after": [99]}])
    assert box.queue() == box.history() == []


def test_what_can_never_fit_is_refused_at_once(box: Box) -> None:
    with pytest.raises(UserError, match=r"job 1 was rejected: .*4"):
        box.submit(["true"], gpus=5)
    with pytest.raises(UserError, match="was rejected"):
        box.submit(["true"], gpus=5, array="3")
    with pytest.raises(UserError, match="was rejected"):
        box.submit(["true"], gpus=5, held=True)
    assert {job.state for job in box.history()} == {"rejected"}


def test_nodes_drain(box: Box) -> None:
    [node] = box.nodes()
    assert (node.gpus, node.free, node.state, node.virtual) == (4, 4, "open", True)
    box.drain(node.name)
    assert box.nodes()[0].state == "draining"
    number = box.submit(["true"])
    assert box.show(number).job.state == "waiting"
    box.undrain(node.name)
    assert box.wait(number).state == "done"
    for name in ("elsewhere", "../about", "a/b", ""):
        with pytest.raises(UserError):
            box.drain(name)


def test_usage_adds_up(box: Box) -> None:
    box.wait(box.submit(["sleep", "0.5"], gpus=2))
    box.wait(box.submit(["false"]))
    [mine] = box.usage()
    assert (mine.jobs, mine.done, mine.failed, mine.running) == (2, 1, 1, 0)
    assert 1.0 <= mine.gpu_hours * 3600 < 60


def test_tokens_are_made_listed_and_revoked(host: Hosted, box: Box) -> None:
    text = box.make_token(owner="eve", role="reader", lasts="8h", note="for the board")
    [token] = box.tokens()
    assert (token.owner, token.role, token.note, token.revoked) == (
        "eve",
        "reader",
        "for the board",
        False,
    )
    with connect(url=host.url, token=text) as remote:
        assert (remote.about().you, remote.about().role) == ("eve", "reader")
        box.revoke(token.id)
        with pytest.raises(UserError, match="this token was revoked"):
            remote.about()


def test_about_says_what_answers(box: Box) -> None:
    about = box.about()
    assert about.virtual
    assert about.policy == "fifo:skip=true"
    assert about.role == "admin"
    assert about.engine


def test_a_task_file_is_submitted(box: Box, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    file = tmp_path / "task.yaml"
    file.write_text(
        "name: from a file\ndirectory: here\ngpus: 1\nenvironment:\n  N: 3\n"
        "run: |\n  pwd\n  echo $N\n  false\n  echo never\n"
    )
    number = box.submit(file)
    assert box.wait(number).state == "failed"
    assert box.log(number).text == f"{tmp_path / 'here'}\n3\n"
    file.write_text('command: echo "two words" $HOME\n')
    plain = box.submit(file)
    box.wait(plain)
    assert box.log(plain).text == "two words $HOME\n", "no shell where none was written"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpus: 1", "give either 'command:'"),
        ("command: echo\nrun: true", "give either 'command:'"),
        ("- a\n- b", "a task is a list of 'field: value' lines"),
        ("command: [", "task.yaml:"),
        ("command: echo 'a", "cannot be split into words"),
        ("command: {a: 1}", "'command:' is a line of text"),
        ("command: echo\nenvironment: 3", "'environment:' is a list"),
        ("command: echo\ngpu: 3", "gpu: Extra inputs are not permitted"),
        ("command: echo\ngpus: many", "gpus: Input should be a valid number"),
        ("command: echo\ncpus: many", "cpus: 'many' is no number of CPU cores"),
        ("command: echo\nmemory: -5", "memory: -5.0 is no amount of memory"),
        ("command: echo\ntime_limit: soon", "time_limit: 'soon' is no length of time"),
        ("command: echo\npriority: urgent", "priority: 'urgent' is no priority"),
        ("command: echo\non_reboot: pray", "on_reboot: Input should be 'requeue' or 'fail'"),
        ("command: echo\narray: a-b", "'a-b' is no array"),
        ("command: echo\narray: 10001", "an array has at most 10000 members"),
        ("command: echo\narray: 1,1", "names a member twice"),
        ("command: echo\narray: '3'\nsweep: {a: [1]}", "an array or a sweep, not both"),
        ("command: echo\nsweep: {a: []}", "at least one value"),
        ('command: echo\nname: "a\\u001b[31m"', "a name is one line of printable text"),
        ("command: echo\ngpus: 1.5", "1.5 GPUs: ask for a whole number"),
        ("command: echo\nafter: [x]", "after.0: "),
    ],
)
def test_a_wrong_task_file_is_one_sentence(
    untouched: Box, tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "task.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        untouched.submit(file)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert untouched.queue() == untouched.history() == []


NOTHING = ("0", "7", "7.1", "x", "", "1/cancel", "../nodes", "-1", "1.2.3", "9" * 30, "١", "%31")


def test_references_that_mean_nothing_are_refused(box: Box) -> None:
    box.submit(["true"], held=True)
    for reference in NOTHING:
        for verb in (box.show, box.members, box.log, box.cancel, box.hold, box.requeue):
            with pytest.raises(UserError):
                verb(reference)
    assert box.show(1).job.state == "held"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_controller_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The HTTP library leaves a socket to the garbage collector that could not be connected.
    with connect(tmp_path) as box, pytest.raises(UserError, match="start one with: dovetail up"):
        box.about()
    with pytest.raises(UserError, match="there is no data folder"):
        connect(tmp_path / "absent")
    with connect(url="http://127.0.0.1:9", token="t") as box, pytest.raises(UserError):
        box.about()
    with pytest.raises(UserError, match="in the open; use https"):
        connect(url="http://example.org", token="t")
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    with pytest.raises(UserError, match="no controller runs here"):
        connect()


class Curt(BaseHTTPRequestHandler):
    """Answers one question a line, and hangs up when it is asked another."""

    protocol_version = "HTTP/1.1"
    asked = 0

    def do_GET(self) -> None:
        self.asked += 1
        if self.asked == 1:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
        else:
            self.close_connection = True

    def log_message(self, *said: object) -> None:
        pass


def test_a_line_that_was_silent_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "KEPT", 0.05)
    with ThreadingHTTPServer(("127.0.0.1", 0), Curt) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with Connection(Address(url=f"http://127.0.0.1:{server.server_port}", token="t")) as line:
            for _ in range(2):
                assert line.get("about") == {}
                time.sleep(0.1)
        server.shutdown()


def test_a_deep_data_folder_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-rather-long-name-of-a-folder"] * 5) / "data"
    assert len(os.fsencode(deep)) > 108
    with Hosted(deep) as host, host.box() as box:
        assert box.about().jobs == 0
