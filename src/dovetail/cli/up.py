"""`dovetail up` and `dovetail down`: begin and end the controller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dovetail.cli.engines import (
    Account,
    Engine,
    Nodes,
    Partition,
    Qos,
    Share,
    SlurmOptions,
    TimeLimit,
    engine_of,
)
from dovetail.cli.options import Allocator, LiveTenancy, Placement, Predictor, Profiles, Quotas
from dovetail.cli.talking import AsJson, DataDir, box, print_json
from dovetail.model.errors import UserError
from dovetail.model.node import VIRTUAL, Node
from dovetail.report.words import plural

if TYPE_CHECKING:
    from dovetail.controller.api.listening import Listening
    from dovetail.controller.api.people import Doorkeeper
    from dovetail.controller.api.service import Service
    from dovetail.controller.loop import Settings
    from dovetail.controller.opening import Engine as EngineMaker
    from dovetail.controller.opening import Opening
    from dovetail.live import Box

LOG = "controller.log"
SECRET = "webhook-secret"
NO_TENANTS = "none"
PATIENCE = 60.0
"""Seconds a controller may take to begin, or to end."""


def up(
    data_dir: DataDir = None,
    engine: Engine = "local",
    partition: Partition = None,
    nodes: Nodes = None,
    share: Share = 1.0,
    account: Account = None,
    qos: Qos = None,
    time_limit: TimeLimit = None,
    gpus: Annotated[int | None, typer.Option(help="So many virtual GPUs, to try it out.")] = None,
    policy: Annotated[str | None, typer.Option(help="What decides: see dovetail policies.")] = None,
    placement: Placement = None,
    allocator: Allocator = None,
    predictor: Predictor = None,
    profiles: Profiles = None,
    port: Annotated[int | None, typer.Option(help="Serve a port too; 0: any free one.")] = None,
    host: Annotated[str, typer.Option(help="Where to serve the port.")] = "127.0.0.1",
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate for the port.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    quotas: Quotas = None,
    tenancy: LiveTenancy = None,
    idle: Annotated[
        str | None, typer.Option(help="30m:cancel; what becomes of jobs with idle GPUs.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Like 90d: how long ended jobs are remembered.")
    ] = None,
    admins: Annotated[str, typer.Option(help="Users who may do everything: a,b.")] = "",
    database: Annotated[
        str | None, typer.Option(help="postgresql+psycopg://… instead of a file.")
    ] = None,
    webhook: Annotated[
        list[str] | None, typer.Option(help="Tell this address of changes; may be repeated.")
    ] = None,
    webhook_secret: Annotated[
        Path | None, typer.Option(help="File with what signs them; made if missing.")
    ] = None,
    shadow: Annotated[
        str | None, typer.Option(help="A policy that looks on and never acts: dovetail shadow.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Run in the background.")] = False,
) -> None:
    """Start the controller on this machine."""
    from dovetail.live.finding import own_folder  # noqa: PLC0415

    folder = data_dir or own_folder()
    if detach:
        _detach(folder)
        return
    from dovetail.controller.api.listening import Listening  # noqa: PLC0415
    from dovetail.controller.opening import Opening  # noqa: PLC0415
    from dovetail.controller.parts import DEFAULT_POLICY, Parts  # noqa: PLC0415
    from dovetail.model.quota import read_quotas  # noqa: PLC0415
    from dovetail.tenancy.kinds import chosen  # noqa: PLC0415

    # The journal names the file: it must be found from anywhere.
    measured = None if profiles is None else str(Path(profiles).resolve())
    # What a file of quotas says is on record, so that a change of it is noticed.
    caps = str(read_quotas(quotas)) if quotas else None
    owned = None if tenancy in (None, NO_TENANTS) else chosen(tenancy).written()
    parts = Parts(policy or DEFAULT_POLICY, placement, allocator, predictor, measured, caps, owned)
    named = frozenset(name.strip() for name in admins.split(",") if name.strip())
    opening = Opening(
        folder,
        parts,
        database,
        named,
        _settings(idle, keep),
        shadow=shadow,
        keep_tenants=tenancy is None,
    )
    where = Listening(folder, os.geteuid() == 0, port, host, tls_cert, tls_key)
    where.check()
    slurm = SlurmOptions(partition, nodes, share, account, qos, time_limit)
    hooks = Hooks(tuple(webhook or ()), webhook_secret)
    _run(opening, where, engine_of(engine, gpus, slurm), hooks)


def _settings(idle: str | None, keep: str | None) -> Settings:
    from dovetail.controller.idleness import read_rule  # noqa: PLC0415
    from dovetail.controller.loop import Settings  # noqa: PLC0415
    from dovetail.controller.retention import DAY, Retention  # noqa: PLC0415
    from dovetail.model.amounts import duration  # noqa: PLC0415

    kept = Retention() if keep is None else Retention(days=duration(keep) / DAY)
    return Settings(idle=read_rule(idle), keep=kept)


class Hooks(NamedTuple):
    """Who is told of changes."""

    urls: tuple[str, ...]
    #: None: a file in the data folder
    secret: Path | None

    def attach(self, service: Service, folder: Path) -> None:
        """Tell them as long as the service is served."""
        if not self.urls:
            return
        from dovetail.controller.webhooks import Webhook, read_secret  # noqa: PLC0415

        secret = read_secret(self.secret or folder / SECRET)
        for url in self.urls:
            hook = Webhook(service.controller, url, secret)
            service.readers.append(hook)
            service.beside.append(hook.run)


def _run(opening: Opening, where: Listening, engine: EngineMaker, hooks: Hooks) -> None:
    import asyncio  # noqa: PLC0415
    import logging  # noqa: PLC0415

    from dovetail.controller.opening import opened  # noqa: PLC0415
    from dovetail.controller.telling import Teller  # noqa: PLC0415

    logging.basicConfig(format="%(asctime)s  %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("dovetail").setLevel(logging.INFO)
    with opened(opening, engine) as (service, keeper):
        service.watchers.append(Teller(service.controller))
        hooks.attach(service, where.folder)
        asyncio.run(_live(service, keeper, where))
    typer.echo("The controller has ended; jobs that run go on.", err=True)


async def _live(service: Service, keeper: Doorkeeper, where: Listening) -> None:
    import asyncio  # noqa: PLC0415

    from dovetail.controller.api.app import make_app  # noqa: PLC0415
    from dovetail.controller.api.serving import serve  # noqa: PLC0415
    from dovetail.web.serving import Dashboard  # noqa: PLC0415

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, service.end)
    app = Dashboard(make_app(service, keeper))
    await serve(service, app, where, _greeting(service, where))


def _greeting(service: Service, where: Listening) -> Callable[[int | None], None]:
    from dovetail.cli.tenant_tables import owners_line  # noqa: PLC0415

    def greet(port: int | None) -> None:
        controller = service.controller
        typer.echo(f"Dovetail is up on {_machines(controller.executor.nodes)}.", err=True)
        typer.echo(f"  {controller.executor.describe()}", err=True)
        typer.echo(f"  policy {service.policy}, data in {where.folder}", err=True)
        owners = controller.scheduler.tenancy.overview()
        if owners.kind:
            typer.echo(f"  {owners_line(owners)}", err=True)
        if port is not None:
            scheme = "https" if where.certificate else "http"
            typer.echo(f"  {scheme}://{where.host}:{port} (token: dovetail token make)", err=True)
        if controller.roster:
            typer.echo(f"  {plural(len(controller.roster), 'job')} from before", err=True)
        typer.echo("Submit with: dovetail submit --gpus 1 -- python train.py", err=True)

    return greet


def _machines(nodes: Sequence[Node]) -> str:
    """What there is, in a line."""
    first = nodes[0]
    cores = sum(node.cpu or 0 for node in nodes) / 1000
    memory = sum(node.memory or 0 for node in nodes) / 1024
    kinds = "+".join(dict.fromkeys(node.type for node in nodes))
    if first.type == VIRTUAL:
        kinds = "virtual GPUs (made up: for trying it out)"
    where = first.name if len(nodes) == 1 else f"{len(nodes)} nodes"
    gpus = sum(node.gpus for node in nodes)
    return f"{where}: {gpus} {kinds}, {cores:g} cores, {memory:.3g} GiB of memory"


def _detach(folder: Path) -> None:
    """The same command again, on its own; here we only wait until it answers."""
    from dovetail.controller.opening import prepared  # noqa: PLC0415

    folder = prepared(folder)
    if _answers(folder):
        raise UserError(f"{folder}: another controller is using it; stop that one first")
    words = [word for word in sys.argv[1:] if word not in ("--detach", "-d")]
    with open(folder / LOG, "ab", opener=_private) as log:
        begun = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "dovetail", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            said = (folder / LOG).read_bytes()[begun:].decode(errors="replace").strip()
            last = said.splitlines()[-1] if said else f"exit code {process.returncode}"
            raise UserError(last.removeprefix("dovetail: "))
        if _answers(folder):
            typer.echo(f"Dovetail is up (process {process.pid}); its log is {folder / LOG}")
            return
        time.sleep(0.05)
    raise UserError(f"the controller does not answer yet; see {folder / LOG}")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _answers(folder: Path) -> bool:
    try:
        with box(folder) as found:
            found.about()
    except UserError:
        return False
    return True


def down(
    stop_jobs: Annotated[
        bool, typer.Option("--stop-jobs", help="Cancel what runs, too; what waits stays.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """End the controller; jobs that run go on, and the next one finds them."""
    with box(data_dir) as found:
        stopped = found.end(stop_jobs)
        _gone(found)
    if as_json:
        print_json({"down": True, "stopped": stopped})
    else:
        typer.echo(
            "The controller is down" + (f"; {plural(stopped, 'job')} ended." if stop_jobs else ".")
        )


def _gone(found: Box) -> None:
    """Wait until the controller has let go of everything: the next one may begin at once."""
    from dovetail.live.finding import in_use  # noqa: PLC0415

    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            found.about()
        except UserError:
            if not in_use(found.address.folder):
                return
        time.sleep(0.05)
    raise UserError("the controller was asked to end and has not yet")
