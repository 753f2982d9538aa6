"""The tools that `dovetail mcp` offers, each a question to the controller, answered as values.

Each call opens a line of its own: assistants are idle for hours, and controllers restart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from secrets import compare_digest, token_hex
from typing import Any, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from dovetail import __version__
from dovetail.cli.job_tables import forecast_text
from dovetail.cli.jobs import moment
from dovetail.cli.submit import looked
from dovetail.cli.talking import box
from dovetail.cli.what_if import quota_sizes
from dovetail.core.codec import to_plain
from dovetail.live import Box, tasks
from dovetail.model.errors import UserError
from dovetail.report.comparing import bands

Given = ParamSpec("Given")
Answer = dict[str, Any]
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
SUBMITS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
ABOUT = """Dovetail schedules jobs on shared GPUs. Ask queue, show, why, when, what_if, nodes, \
tenants and history. To run something call submit without confirm, show the person what it \
answers, and call it again with the same arguments and confirm set to the token of that preview."""
MOST = 500
"""Jobs in one answer."""


def served(folder: Path | None) -> MCPServer:
    """A server with all tools, on the controller of a folder."""
    server = MCPServer("dovetail", version=__version__, instructions=ABOUT, log_level="WARNING")
    tools = Tools(folder)
    reading: tuple[Callable[..., Answer], ...] = (
        tools.queue,
        tools.show,
        tools.why,
        tools.when,
        tools.what_if,
        tools.nodes,
        tools.tenants,
        tools.history,
    )
    for tool in reading:
        server.tool(annotations=READS)(told(tool))
    server.tool(annotations=SUBMITS)(told(tools.submit))
    return server


def told(tool: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """What was wrong with a question is its answer, in one sentence."""

    @wraps(tool)
    def ask(*given: Given.args, **named: Given.kwargs) -> Answer:
        try:
            return tool(*given, **named)
        except UserError as error:
            raise ToolError(str(error)) from None

    return ask


class Tools:
    """Questions to one controller."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        #: makes tokens that nobody can guess and that this server alone believes
        self._secret = token_hex()

    def queue(self, owner: str | None = None, state: str | None = None, limit: int = 50) -> Answer:
        """Jobs that have not ended, with where they run or why they wait."""
        with box(self._folder) as found:
            page = found.page(owner=owner, state=state, reasons=True, limit=min(limit, MOST))
        return _plain(page)

    def show(self, job: str | int) -> Answer:
        """All that is known of one job: `12`, or `12.3` for a member of an array."""
        with box(self._folder) as found:
            detail = _plain(found.show(job))
        # Whose environment it is did not agree to hand it to an assistant.
        del detail["environment"], detail["hidden"]
        return detail

    def why(self, job: str | int) -> Answer:
        """Why a job waits or is as it is: the cause, who is in front, and what would help."""
        with box(self._folder) as found:
            return _plain(found.why(job))

    def when(self, job: str | int) -> Answer:
        """When a job starts and ends: seconds from now as ranges with a probability."""
        with box(self._folder) as found:
            return _plain(found.when(job))

    def what_if(
        self,
        policy: str | None = None,
        gpus: int | None = None,
        quotas: str | None = None,
        since: str | None = None,
    ) -> Answer:
        """This controller's past replayed with another policy, number of GPUs, or quotas.

        Quotas are like `alice=4,*=2`, since is like `7d`. Distributions are left out.
        """
        different = {"policy": policy, "gpus": gpus, "quotas": quota_sizes(quotas)}
        with box(self._folder) as found:
            answer = _plain(found.what_if(**different, since=moment(since)))
        for each in (answer["before"], answer["after"]):
            for long in ("waits", "jcts", "busy", "queue"):
                del each[long]
        del answer["delays"], answer["pairs"]
        answer["changes"] = dict(zip(bands(), answer["changes"], strict=True))
        return answer

    def nodes(self) -> Answer:
        """The machines: GPUs, cores and memory, free and in all, and the jobs there."""
        with box(self._folder) as found:
            return {"policy": found.about().policy, "nodes": to_plain(found.nodes())}

    def tenants(self) -> Answer:
        """What each tenant owns, uses, lends and borrows, and which jobs are lent what.

        `kind` is empty where there are no tenants. Who is on which GPU is left out: ask nodes.
        """
        with box(self._folder) as found:
            answer = _plain(found.tenants())
        del answer["patches"]
        return answer

    def history(
        self,
        owner: str | None = None,
        state: str | None = None,
        since: str | None = None,
        limit: int = 50,
    ) -> Answer:
        """Jobs that have ended, the latest first; since is like `7d`."""
        with box(self._folder) as found:
            jobs = found.history(min(limit, MOST), owner=owner, state=state, since=moment(since))
        return {"jobs": to_plain(jobs)}

    def submit(
        self,
        command: list[str],
        directory: str,
        gpus: float = 0,
        cpus: float | None = None,
        memory: str | None = None,
        name: str | None = None,
        time_limit: str | None = None,
        confirm: str = "",
    ) -> Answer:
        """Preview a job: what it is, and where and when it would run. Nothing is submitted.

        The preview has a token. After the person has agreed, the same call with `confirm` set to
        that token submits the job. Memory is like `16G`, the time limit like `2h`.
        """
        job = {
            "directory": directory,
            "gpus": gpus,
            "cpus": cpus,
            "memory": memory,
            "name": name,
            "time_limit": time_limit,
        }
        given = {field: value for field, value in job.items() if value is not None}
        task = tasks.task(command, **given)
        given["command"] = command
        token = self._token(given)
        with box(self._folder) as found:
            if not confirm:
                note = looked(task) if command and found.address.folder is not None else ""
                return {**_preview(found, given, task, token), **({"note": note} if note else {})}
            if not compare_digest(confirm.encode(), token.encode()):
                raise UserError("confirm is not the token of a preview of this very job")
            return {"submitted": True, **_plain(found.submit_all([task])[0])}

    def _token(self, given: dict[str, Any]) -> str:
        written = json.dumps([self._secret, given], sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()[:16]


def _preview(found: Box, given: dict[str, Any], task: dict[str, Any], token: str) -> Answer:
    forecast = found.forecast(task)
    answer = {"submitted": False, "job": given, "preview": forecast_text(forecast)}
    # What can never run needs no token.
    return {**answer, "confirm": token} if forecast.possible else answer


def _plain(value: Any) -> Answer:
    found: Answer = to_plain(value)
    return found
