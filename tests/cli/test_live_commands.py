"""The live commands as people type them: 80 columns, JSON, exit codes, one sentence for a mistake.

Most talk to a controller in a thread; those about its life have a process of their own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosting import PATIENCE, Hosted, Process, command, surroundings, until

Dovetail = Callable[..., Any]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    with Hosted(tmp_path / "data") as made:
        monkeypatch.setenv("DOVETAIL_DATA_DIR", str(made.folder))
        monkeypatch.chdir(tmp_path)
        yield made


pytestmark = pytest.mark.usefixtures("host")


def narrow(text: str) -> None:
    for line in text.splitlines():
        assert len(line.rstrip()) <= 80, line


def test_submit_says_the_number_alone(dovetail: Dovetail) -> None:
    assert dovetail("submit", "--gpus", 1, "--", "echo", "hi")[:2] == (0, "1\n")
    answer = dovetail("submit", "--array", "1,3", "--hold", "--", "true")
    assert answer == (0, "2\n", "an array of 2 jobs\n")
    receipt = json.loads(dovetail("submit", "--json", "--hold", "--", "true").out)
    assert (receipt["jobs"], receipt["array"], receipt["state"]) == ([5], None, "held")


def test_wait_shows_the_log_and_ends_as_the_job_does(dovetail: Dovetail) -> None:
    answer = dovetail("submit", "--wait", "--", "sh", "-c", "echo one; echo two >&2")
    assert answer == (0, "one\ntwo\n", "job 1\n")
    answer = dovetail("submit", "--wait", "--", "sh", "-c", "echo no; exit 3")
    assert answer == (1, "no\n", "job 2\njob 2 failed: exit code 3\n")
    answer = dovetail("submit", "--wait", "--sweep", "code=0,4", "--", "sh", "-c", "exit {code}")
    assert (answer.code, answer.out) == (1, "")
    assert "failed: exit code 4" in answer.err
    answer = dovetail("submit", "--wait", "--json", "--", "true")
    assert (answer.code, json.loads(answer.out)["jobs"]) == (0, [6])


def test_a_job_has_the_time_to_stop_that_its_owner_gives_it(
    host: Hosted, dovetail: Dovetail
) -> None:
    dovetail("submit", "--hold", "--grace", "2m", "--", "true")
    assert host.inside(lambda service: service.controller.roster[1].submission.grace) == 120
    answer = dovetail("submit", "--grace", "2h", "--", "true")
    assert (answer.code, "an hour to stop at most" in answer.err) == (2, True), answer


def test_options_reach_the_job(dovetail: Dovetail, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    words = ["--name", "n", "--gpus", 0.5, "--cpus", 0.5, "--memory", "100M", "--priority", "high"]
    more = ["--deadline", "8h", "--time-limit", "1h30m", "--estimate", "10m", "--retries", 2]
    rest = ["--directory", "sub", "--env", "A=1", "--secret", "B=2", "--resumable", "--hold"]
    assert dovetail("submit", *words, *more, *rest, "--", "env").code == 0
    detail = json.loads(dovetail("show", 1, "--json").out)
    job = detail["job"]
    assert (job["name"], job["gpus"], job["cpu"], job["memory"]) == ("n", 0.5, 500, 100)
    assert (job["priority"], job["time_limit"], job["resumable"]) == (1.0, 5400.0, True)
    assert job["deadline"] == pytest.approx(job["submitted"] + 8 * 3600)
    assert detail["directory"] == str(tmp_path / "sub")
    assert ["A", "1"] in detail["environment"]
    assert "B" in detail["hidden"]
    shown = dovetail("show", 1).out
    narrow(shown)
    assert "1 h 30 min" in shown


def test_secrets_do_not_show(
    dovetail: Dovetail, host: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = ["s3cret-one", "s3cret-two", "s3cret-three", "s3cret-four", "s3cret-five"]
    monkeypatch.setenv("WANDB_API_KEY", hidden[0])
    monkeypatch.setenv("DATA_BASE", f"postgres://me:{hidden[1]}@host/x")
    script = "echo $WANDB_API_KEY $HARMLESS | tr 'a-z' 'A-Z'; exit 5"
    words = ["sh", "-c", script, "--password", hidden[2], f"--api-key={hidden[3]}"]
    answer = dovetail("submit", "--wait", "--secret", f"HARMLESS={hidden[4]}", "--", *words)
    assert answer == (
        1,
        f"{hidden[0].upper()} {hidden[4].upper()}\n",
        "job 1\njob 1 failed: exit code 5\n",
    )
    dovetail("submit", "--hold", "--secret", f"HARMLESS={hidden[4]}", "--", *words)
    looks = [("show", 1), ("show", 2), ("why", 2), ("queue",), ("history",), ("usage",), ("nodes",)]
    said = [dovetail(*look, *more) for look in looks for more in ((), ("--json",))]
    told = "".join(answer.out + answer.err for answer in said)
    assert all(answer.code == 0 for answer in said)
    assert "--password '***'" in told
    assert not [secret for secret in hidden if secret in told]
    wrong = dovetail("submit", "--secret", hidden[0], "--", "true")
    assert (wrong.code, wrong.err) == (2, "dovetail: --secret: write NAME=value\n")
    for column in ("submission", "events", "actions", "state", "launch"):
        assert not [secret for secret in hidden if secret in stored(host, column)], column
    assert all(secret in stored(host, "secrets") for secret in hidden)


def stored(host: Hosted, column: str) -> str:
    """All that the data base holds in a column."""
    tables = {
        "submission": "jobs",
        "secrets": "jobs",
        "events": "batches",
        "actions": "plans",
        "state": "snapshots",
        "launch": "attempts",
    }
    from sqlalchemy import text

    def read(service: Any) -> str:
        rows = service.controller.journal.store.rows(text(f"select {column} from {tables[column]}"))
        return "".join(str(row[column]) for row in rows)

    found: str = host.inside(read)
    return found


def test_queue_show_why_nodes_history_usage_fit_eighty_columns(dovetail: Dovetail) -> None:
    long = "a-very-long-name-of-a-job-" * 7
    dovetail("submit", "--gpus", 4, "--name", long, "--", "sh", "-c", "sleep 600", "x" * 300)
    dovetail("submit", "--gpus", 2, "--array", 20, "--", "sleep", 600)
    until(lambda: "running" in dovetail("queue").out)
    for words in (("queue",), ("show", 1), ("show", 2), ("nodes",), ("usage",)):
        answer = dovetail(*words)
        assert answer.code == 0
        narrow(answer.out)
        assert json.loads(dovetail(*words, "--json").out) is not None
    why = dovetail("why", 3).out
    assert "waiting" in why
    assert "job 1 " in why
    assert json.loads(dovetail("why", 3, "--json").out)
    assert dovetail("cancel", 1, 2).out == "job 1 cancelled\nall 20 of 2 cancelled\n"
    until(lambda: "cancelled" in dovetail("history").out)
    narrow(dovetail("history").out)
    assert len(json.loads(dovetail("history", "--json", "--limit", 5).out)) == 5


def test_members_of_an_array_that_run_are_one_line_with_their_nodes(dovetail: Dovetail) -> None:
    dovetail("submit", "--gpus", 1, "--array", 2, "--", "sleep", 600)
    until(lambda: all(text in dovetail("queue").out for text in (": 2 jobs", "1 (×2)")))
    dovetail("cancel", 1)


def test_control_characters_do_not_reach_the_terminal(dovetail: Dovetail, host: Hosted) -> None:
    evil = "\x1b]0;owned\x07\x1b[31m\u202e"
    refused = dovetail("submit", "--name", evil, "--", "true")
    assert (refused.code, refused.err) == (
        2,
        "dovetail: --name: a name is one line of printable text\n",
    )
    with host.box() as box:
        box.submit([f"./{evil}", evil], environment={"X": evil}, directory="/")
        box.submit(["true", "[bold]not markup[/bold]", evil], held=True)
    until(lambda: "failed" in dovetail("history").out)
    for words in (("show", 1), ("history",), ("show", 2), ("queue",), ("why", 1)):
        out = dovetail(*words).out
        assert "\x1b" not in out, words
        assert "\x07" not in out, words
    assert "[bold]not markup[/bold]" in dovetail("show", 2).out


def test_logs_are_followed_and_cut(dovetail: Dovetail) -> None:
    dovetail("submit", "--", "sh", "-c", "for i in 1 2 3 4; do echo line $i; sleep 0.1; done")
    assert dovetail("logs", "-f", 1).out == "line 1\nline 2\nline 3\nline 4\n"
    assert dovetail("logs", 1).out == "line 1\nline 2\nline 3\nline 4\n"
    assert dovetail("logs", 1, "--tail", 2).out == "line 3\nline 4\n"
    assert json.loads(dovetail("logs", 1, "--json").out)["text"].startswith("line 1")
    assert dovetail("logs", 1, "--attempt", 2).code == 2


def test_dry_run_says_where_and_when(dovetail: Dovetail) -> None:
    answer = dovetail("submit", "--dry-run", "--gpus", 2, "--", "true")
    assert answer.out.startswith("It would start now on ")
    assert "GPU 0,1" in answer.out
    never = dovetail("submit", "--dry-run", "--gpus", 9, "--", "true")
    assert (never.code, never.out) == (2, "")
    assert "It can never run here: it " in never.err
    dovetail("submit", "--gpus", 4, "--estimate", "10m", "--", "sleep", 600)
    until(lambda: "running" in dovetail("queue").out)
    later = dovetail("submit", "--dry-run", "--gpus", 1, "--json", "--", "true")
    told = json.loads(later.out)
    assert 500 < told["starts_in"] <= 600
    assert dovetail("queue", "--json").out.count('"id"') == 1, "nothing was submitted"


def test_hold_release_requeue_and_drain(dovetail: Dovetail, host: Hosted) -> None:
    with host.box() as box:
        node = box.nodes()[0].name
    assert dovetail("drain", node).out == f"{node} is draining\n"
    dovetail("submit", "--", "sleep", 600)
    assert dovetail("hold", 1).out == "job 1 held\n"
    assert "held" in dovetail("queue").out
    assert dovetail("release", 1).out == "job 1 released\n"
    assert dovetail("drain", node, "--undo").out == f"{node} takes work again\n"
    until(lambda: "running" in dovetail("queue").out)
    assert dovetail("requeue", 1).out == "job 1 requeued\n"
    dovetail("cancel", 1)
    until(lambda: "cancelled" in dovetail("history").out)
    assert dovetail("requeue", 1).out == "job 1 requeued as job 2\n"


def test_one_wrong_job_among_many_is_told_and_the_rest_is_done(dovetail: Dovetail) -> None:
    dovetail("submit", "--array", 2, "--hold", "--", "true")
    answer = dovetail("cancel", "1.0", 99, "1.1")
    assert (answer.code, answer.out) == (2, "job 1.0 cancelled\njob 1.1 cancelled\n")
    assert answer.err == "dovetail: there is no job 99\n"


def test_tokens_by_command(
    dovetail: Dovetail, host: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = dovetail("token", "make", "--user", "ann", "--lasts", "8h", "--note", "x").out.strip()
    assert text.startswith("dt_")
    listing = dovetail("token", "list").out
    narrow(listing)
    assert "ann" in listing
    assert text.rpartition("_")[2] not in listing
    monkeypatch.setenv("DOVETAIL_URL", host.url)
    monkeypatch.setenv("DOVETAIL_TOKEN", text)
    monkeypatch.delenv("DOVETAIL_DATA_DIR")
    assert dovetail("submit", "--", "true").code == 0
    assert dovetail("down").err == "dovetail: only an admin may do this\n"
    monkeypatch.delenv("DOVETAIL_URL")
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(host.folder))
    assert "opens nothing" in dovetail("token", "revoke", text.split("_")[1]).out


MISTAKES: list[tuple[tuple[object, ...], str]] = [
    (("show", ""), "say which job: 12, or 12.3"),
    (("queue", "--state", "runing"), "no job is ever 'runing'; write one of waiting"),
    (("submit",), "give a command after --, or a task file"),
    (("submit", "--gpus", 99, "--", "true"), "job 1 was rejected: it "),
    (("submit", "--gpus", 99, "--array", 3, "--", "true"), "was rejected: it "),
    (("submit", "--gpus", -1, "--", "true"), "gpus: Input should be greater"),
    (("submit", "--gpus", 1.5, "--", "true"), "1.5 GPUs"),
    (("submit", "--cpus", "x", "--", "true"), "dovetail: --cpus: 'x' is no number of CPU cores"),
    (
        ("submit", "--memory", "lots", "--", "true"),
        "dovetail: --memory: 'lots' is no amount of memory",
    ),
    (("submit", "--deadline", "soon", "--", "true"), "deadline: 'soon' is no length of time"),
    (("submit", "--after", "x", "--", "true"), "dovetail: --after: "),
    (("submit", "--gpus", -1, "--", "true"), "dovetail: --gpus: "),
    (("submit", "--dry-run", "--memory", "1Z", "--", "true"), "dovetail: --memory: '1Z'"),
    (("submit", "--directory", "gone", "--", "true"), "gone: there is no such folder"),
    (("submit", "--after", "77", "--", "true"), "there is no job 77"),
    (("submit", "--array", "5-1", "--", "true"), "an array has 1 to 10000 members"),
    (("submit", "--sweep", "lr", "--", "true"), "--sweep: write NAME=value"),
    (("submit", "--env", "=x", "--", "true"), "--env: write NAME=value"),
    (("submit", "--file", "none.yaml"), "none.yaml: cannot be read"),
    (("submit", "--on-reboot", "x", "--", "true"), "dovetail: --on-reboot: Input should be"),
    (("show", "x"), "'x' is no job: write 12, or 12.3"),
    (("show", 7), "there is no job 7"),
    (("why", "../nodes"), "there is nothing at "),
    (("logs", 7), "there is no job 7"),
    (("cancel", 7), "there is no job 7"),
    (("drain", "elsewhere"), "no node is named 'elsewhere'"),
    (("history", "--since", "x"), "'x' is no length of time"),
    (("token", "make", "--role", "king"), "role: Input should be"),
    (("token", "revoke", "77"), "there is no token '77'"),
    (("up", "--host", "0.0.0.0", "--port", 0), "0.0.0.0 is not loopback"),
    (("up", "--data-dir", "new", "--policy", "fifoo"), "unknown policy 'fifoo'"),
    (("queue", "--data-dir", "nowhere"), "nowhere: there is no data folder"),
]


def test_mistakes_are_one_sentence_and_change_nothing(dovetail: Dovetail, host: Hosted) -> None:
    for words, says in MISTAKES:
        answer = dovetail(*words)
        assert answer.code == 2, words
        assert answer.out == "", words
        assert answer.err.startswith("dovetail: "), words
        assert says in answer.err, (words, answer.err)
        assert answer.err.count("\n") == 1, words
    with host.box() as box:
        assert box.queue() == []
        assert {job.state for job in box.history()} == {"rejected"}


# ---- the life of a controller -----------------------------------------------------------------


def run(folder: Path, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        env=surroundings(folder, **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE * 3,
        check=False,
    )


WRITES, SLEEPS = ("--", "sh", "-c", "echo $$; sleep 600"), ("--", "sleep", 600)


def test_jobs_outlive_controllers_unless_told_otherwise(
    tmp_path: Path, dovetail: Dovetail, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "box"
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(folder))
    first = run(folder, "up", "--gpus", 2, "--detach")
    assert (first.returncode, first.stderr) == (0, "")
    assert (folder / "controller.log").stat().st_mode & 0o777 == 0o600
    second = run(folder, "up", "--gpus", 2, "--detach")
    assert second.returncode == 2
    assert (
        second.stderr
        == f"dovetail: {folder}: another controller is using it; stop that one first\n"
    )
    again = run(folder, "up", "--gpus", 2)
    assert (again.returncode, again.stderr) == (2, second.stderr)
    job = dovetail("submit", "--memory", "1G", "--gpus", 2, *WRITES).out.strip()
    waiting = dovetail("submit", "--memory", "1G", "--gpus", 1, *SLEEPS).out.strip()
    until(lambda: dovetail("logs", job).out, "the log")
    pid = int(dovetail("logs", job).out)
    assert run(folder, "down").stdout == "The controller is down.\n"
    assert not (folder / "socket").exists()
    os.kill(pid, 0)
    assert "no controller runs here" in run(folder, "queue").stderr
    process = Process(folder)
    assert "2 jobs from before" in process.said()
    shown = json.loads(dovetail("show", job, "--json").out)
    assert (shown["job"]["state"], shown["job"]["attempts"]) == ("running", 1)
    down = run(folder, "down", "--stop-jobs")
    assert down.stdout == "The controller is down; 1 job ended.\n"
    assert process.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    process = Process(folder)
    until(lambda: '"running"' in dovetail("show", waiting, "--json").out)
    assert json.loads(dovetail("history", "--json").out)[0]["state"] == "cancelled"
    process.close()


def test_signals_end_a_controller_in_order(tmp_path: Path) -> None:
    process = Process(tmp_path / "box")
    with process.box() as box:
        # So little that both run at once on any machine.
        job = box.submit(["sleep", "600"], cpus=0.1)
        until(lambda: box.show(job).job.state == "running")
        words = ["false", "--password", "s3cret"]
        box.wait(box.submit(words, secrets={"A": "s3cret"}, cpus=0.1))
    for number in (signal.SIGTERM, signal.SIGINT):
        process.process.send_signal(number)
        assert process.wait() == 0
        assert number == signal.SIGINT or "failed: exit code 1" in process.said()
        assert "s3cret" not in process.said()
        assert "Traceback" not in process.said()
        assert "The controller has ended; jobs that run go on." in process.said()
        process = Process(tmp_path / "box")
        with process.box() as box:
            assert box.show(job).job.state == "running"
    process.close()


def test_a_killed_controller_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    process = Process(tmp_path / "box")
    process.process.kill()
    process.wait()
    assert (tmp_path / "box" / "socket").exists()
    assert "start one with: dovetail up" in run(tmp_path / "box", "queue").stderr
    after = Process(tmp_path / "box")
    after.close()


def test_shells_complete_commands_and_jobs(host: Hosted) -> None:
    with host.box() as box:
        box.submit_all([{"command": ["true"], "held": True}] * 12)
    program = Path(sys.executable).with_name("dovetail")
    if not program.exists():
        pytest.skip("dovetail is not installed beside Python")

    def complete(line: str, place: int) -> list[str]:
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(place)}
        around = surroundings(host.folder, _DOVETAIL_COMPLETE="complete_bash", **asked)
        return subprocess.run(
            [program], env=around, capture_output=True, text=True, check=False
        ).stdout.split()

    assert complete("dovetail que", 1) == ["queue"]
    assert complete("dovetail show 1", 2) == ["1", "10", "11", "12"]
