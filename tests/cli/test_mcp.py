"""`dovetail mcp` with a real client over a pipe: it answers, and submits only what was shown."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hosting import Hosted, command, surroundings, until

from dovetail.live import Box

mcp = pytest.importorskip("mcp")

READS = {"queue", "show", "why", "when", "what_if", "nodes", "tenants", "history"}


def talk(host: Hosted, session: Callable[[Any], Awaitable[None]]) -> None:
    """A client in this process, a server in its own."""
    words = command("mcp")
    server = mcp.StdioServerParameters(
        command=words[0], args=words[1:], env=surroundings(host.folder)
    )

    async def live() -> None:
        async with mcp.Client(server) as client:
            await session(client)

    asyncio.run(asyncio.wait_for(live(), 120))


async def ask(client: Any, tool: str, **given: Any) -> Any:
    answer = await client.call_tool(tool, given)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refusal(client: Any, tool: str, **given: Any) -> str:
    answer = await client.call_tool(tool, given)
    assert answer.is_error
    said: str = answer.content[0].text
    return said


def test_an_assistant_can_ask_all_there_is_to_know(host: Hosted, box: Box) -> None:
    box.submit(["true"], name="quick")
    until(box.history)
    box.submit(["sleep", "600"], gpus=4, name="first", estimate=60, environment={"SECRETLY": "x"})
    box.submit(["sleep", "600"], gpus=2, name="second", estimate=60)

    async def session(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == READS | {"submit"}
        assert all(tools[name].annotations.read_only_hint for name in READS)
        assert not tools["submit"].annotations.read_only_hint
        queue = await ask(client, "queue")
        assert [job["name"] for job in queue["jobs"]] == ["first", "second"]
        assert (await ask(client, "why", job="3"))["blame"][0]["job"] == 2
        assert (await ask(client, "when", job="3"))["chance"] == 0.8
        shown = await ask(client, "show", job="2")
        assert shown["job"]["command"] == ["sleep", "600"]
        assert "SECRETLY" not in str(shown)
        assert (await ask(client, "nodes"))["nodes"][0]["gpus"] == 4
        assert (await ask(client, "tenants"))["kind"] == ""
        assert (await ask(client, "history", since="1h"))["jobs"][0]["name"] == "quick"
        answer = await ask(client, "what_if", gpus=8)
        assert (answer["before"]["gpus"], answer["after"]["gpus"]) == (4, 8)
        assert "the same within 1 min" in answer["changes"]
        assert not {"pairs", "delays"} & answer.keys()
        box.apply_tenants('[[tenants]]\nname = "lab"\ngpus = [4]\n')
        tenants = await ask(client, "tenants")
        assert [(each["name"], each["lent"]) for each in tenants["tenants"]] == [("lab", 4)]
        assert [loan["job"] for loan in tenants["loans"]] == [2]
        assert "no job 99" in await refusal(client, "why", job=99)
        assert "say which job" in await refusal(client, "why", job="")
        assert "no job is ever 'lost'" in await refusal(client, "queue", state="lost")

    talk(host, session)


def test_it_submits_only_what_was_previewed(host: Hosted, box: Box, tmp_path: Path) -> None:
    job = {"command": ["touch", "made"], "directory": str(tmp_path), "gpus": 1}

    async def session(client: Any) -> None:
        preview = await ask(client, "submit", **job)
        assert preview["submitted"] is False
        assert "would start now" in preview["preview"]
        assert box.queue() == box.history() == []
        assert "no such folder" in await refusal(client, "submit", **{**job, "directory": "/no"})
        absent = await ask(client, "submit", **{**job, "command": ["pyhton"]})
        assert absent["note"] == "pyhton is no command here, so far"
        token = preview["confirm"]
        other = {**job, "command": ["touch", "other"]}
        for wrong, given in ((token, other), ("yes", job), ("0" * 16, job)):
            assert "very job" in await refusal(client, "submit", **given, confirm=wrong)
        assert box.queue() == box.history() == []
        done = await ask(client, "submit", **job, confirm=token)
        assert (done["submitted"], done["jobs"]) == (True, [1])

    talk(host, session)
    until(lambda: box.show(1).job.state == "done")
    assert (tmp_path / "made").exists()


def test_a_job_that_can_never_run_gets_no_token(host: Hosted) -> None:
    async def session(client: Any) -> None:
        preview = await ask(client, "submit", command=["true"], directory="/tmp", gpus=99)
        assert "can never run here" in preview["preview"]
        assert "confirm" not in preview

    talk(host, session)


def test_a_controller_that_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    words, env = command("mcp"), surroundings(tmp_path)
    answer = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "no controller runs here" in answer.stderr
