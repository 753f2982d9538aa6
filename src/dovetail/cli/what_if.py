"""`dovetail what-if`: what was, replayed with something different."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.jobs import moment
from dovetail.cli.output import check_writable, is_stdout, write
from dovetail.cli.talking import AsJson, DataDir, box, console, print_json
from dovetail.cli.tenants import NONE, owners
from dovetail.model.errors import UserError

if TYPE_CHECKING:
    from dovetail.model.what_if import Comparison


@dataclass(frozen=True)
class Different:
    """What is to be different; None: as it is."""

    policy: str | None
    gpus: int | None
    speed: float | None
    quotas: str | None
    tenancy: str | None

    def check(self) -> None:
        """Something must be, and make sense."""
        if self == Different(None, None, None, None, None):
            raise UserError(
                "say what is to be different: --policy, --gpus, --gpu-speed, --quotas or --tenancy"
            )
        if self.speed is not None and not 0 < self.speed <= 1000:
            raise UserError(f"--gpu-speed {self.speed:g}: write a number like 1.5")

    def live(self, folder: Path | None, since: str | None) -> Comparison:
        """In the past of a controller."""
        with box(folder) as found:
            return found.what_if(
                policy=self.policy,
                gpus=self.gpus,
                speed=self.speed,
                quotas=quota_sizes(self.quotas),
                tenants=None if self.tenancy is None else owners(self.tenancy),
                since=moment(since),
            )

    def trace(self, name: str, cluster: str | None, present: str) -> Comparison:
        """In a trace, on these machines."""
        from dovetail.answers.what_if import compare, resized, setting  # noqa: PLC0415
        from dovetail.simulator.experiment import Replay  # noqa: PLC0415
        from dovetail.simulator.spec import parse_cluster  # noqa: PLC0415
        from dovetail.tenancy.kinds import chosen  # noqa: PLC0415
        from dovetail.traces.loader import load  # noqa: PLC0415

        if cluster is None:
            raise UserError("a trace needs machines: --cluster 16x8")
        machines = parse_cluster(cluster)
        loaded = load(name, cluster_gpus=machines.gpus)
        other = machines if self.gpus is None else resized(machines, self.gpus)
        was = setting(Replay(name, cluster, present), machines)
        instead = Replay(name, cluster, self.policy or present, quotas=self.quotas)
        tenants = None if self.tenancy in (None, NONE) else chosen(self.tenancy or "", cluster)
        then = setting(instead, other, self.speed or 1.0, tenants)
        return compare(list(loaded.jobs), was, then, notices=loaded.notices)


def what_if(
    trace: Annotated[
        str | None, typer.Argument(help="A trace; default: what the controller has seen.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Another policy.")] = None,
    gpus: Annotated[int | None, typer.Option(min=1, help="Another number of GPUs.")] = None,
    gpu_speed: Annotated[
        float | None, typer.Option(help="GPUs of another type, so many times as fast.")
    ] = None,
    quotas: Annotated[str | None, typer.Option(help="Other quotas: alice=4,*=2.")] = None,
    tenancy: Annotated[
        str | None, typer.Option(help="Other owners: cells:FILE, shares:FILE or none.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only jobs of the last 7d, say.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Of a trace: NxG, or a file.")] = None,
    present: Annotated[str, typer.Option(help="Of a trace: the policy as it is.")] = "fifo",
    html: Annotated[
        Path | None, typer.Option(help="Write a page with plots; it opens offline.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Replay what was, with another policy, size, type of GPU, quotas or owners."""
    different = Different(policy, gpus, gpu_speed, quotas, tenancy)
    different.check()
    check_writable(html)
    if trace is None:
        answer = different.live(data_dir, since)
    else:
        answer = different.trace(trace, cluster, present)
    _tell(answer, html, as_json)


def _tell(answer: Comparison, html: Path | None, as_json: bool) -> None:
    """In the terminal, as JSON, and as a page; a page on standard output stands there alone."""
    if html is not None:
        from dovetail.report.what_if import html_what_if  # noqa: PLC0415

        write(html, html_what_if(answer))
    if is_stdout(html):
        return
    if as_json:
        print_json(answer)
        return
    from dovetail.cli.answer_texts import comparison_tables  # noqa: PLC0415

    console().print(*comparison_tables(answer), sep="\n")
    if html is not None:
        typer.echo(f"With plots: {html}")


def quota_sizes(text: str | None) -> dict[str, float] | None:
    """GPUs by name, from `alice=4,*=2`."""
    from dovetail.model.quota import read_quotas  # noqa: PLC0415

    found = read_quotas(text)
    if found is None:
        return None
    return {name: (limit.gpus or 0) / 1000 for name, limit in found.limits.items()}
