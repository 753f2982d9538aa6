"""Figures for Prometheus at `/metrics`: counters fed by decisions, the rest told when asked.

Names and units follow Prometheus' own advice: base units, totals as counters. Like everything
else here it needs a token, which Prometheus can send.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dovetail.controller import reading
from dovetail.controller.api.people import Anyone
from dovetail.controller.api.service import Service
from dovetail.controller.journal import Entry
from dovetail.controller.measuring import Sampler
from dovetail.controller.roster import OVER
from dovetail.controller.tenants import tenants
from dovetail.model.event import Event, Started
from dovetail.model.plan import Plan
from dovetail.model.tenants import Tenant

router = APIRouter(tags=["screens"])

MIB = 2**20
WAITS = (1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)
"""Seconds: limits between which waits are counted."""
STATES = ("waiting", "held", "starting", "running", "stopping", "suspended")


class Meters(Collector):
    """What is counted, and what is told when somebody asks."""

    def __init__(self, service: Service, sampler: Sampler) -> None:
        self._service, self._sampler = service, sampler
        registry = self.registry = CollectorRegistry()
        self._decisions = Counter(
            "dovetail_decisions", "Batches of events that were decided.", registry=registry
        )
        self._actions = Counter(
            "dovetail_actions",
            "What was decided: starts, stops, changes and so on.",
            ["kind"],
            registry=registry,
        )
        self._submitted = Counter(
            "dovetail_jobs_submitted", "Jobs that were submitted.", registry=registry
        )
        self._ended = Counter(
            "dovetail_jobs_ended", "Jobs that ended, by how.", ["state"], registry=registry
        )
        self._waits = Histogram(
            "dovetail_wait_seconds",
            "From submission to the first start.",
            buckets=WAITS,
            registry=registry,
        )
        registry.register(self)

    def __call__(self, now: float, events: Sequence[Event], plan: Plan) -> None:
        """Count one decision."""
        controller = self._service.controller
        self._decisions.inc()
        for event in events:
            live = controller.roster.get(event.job) if isinstance(event, Started) else None
            if live is not None and live.attempts <= 1 and live.started is not None:
                self._waits.observe(live.started - live.submitted)
        for action in plan.actions:
            self._actions.labels(type(action).__name__.lower()).inc()

    def written(self, entry: Entry) -> None:
        """Count who came and who left, whether or not the scheduler ever heard of them."""
        self._submitted.inc(len(entry.new_jobs))
        for row in entry.jobs.values():
            if row.get("state") in OVER:
                self._ended.labels(row["state"]).inc()

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: what is told depends on what there is."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """How things stand."""
        yield from self._queue()
        yield from self._machines()
        yield from self._tenants()
        yield from self._measured()

    def _queue(self) -> Iterable[Metric]:
        controller = self._service.controller
        states: Tally[str] = Tally()
        held: Tally[str] = Tally()
        for live in controller.roster.values():
            states[reading.state_of(controller, live)] += 1
            job = controller.scheduler.jobs.get(live.id)
            if job is not None and job.allocation is not None:
                held[live.submission.owner] += job.allocation.milli_gpus
        jobs = GaugeMetricFamily(
            "dovetail_jobs", "Jobs that have not ended, by state.", labels=["state"]
        )
        for state in STATES:
            jobs.add_metric([state], states[state])
        yield jobs
        users = GaugeMetricFamily(
            "dovetail_user_gpus", "GPUs that jobs of a user hold.", labels=["user"]
        )
        for name, thousandths in sorted(held.items()):
            users.add_metric([name], thousandths / 1000)
        yield users

    def _machines(self) -> Iterable[Metric]:
        cluster = self._service.controller.scheduler.cluster
        states = Tally(cluster.closed.get(at, "open") for at in range(len(cluster.nodes)))
        nodes = GaugeMetricFamily("dovetail_nodes", "Nodes, by state.", labels=["state"])
        for state in ("open", "draining", "down"):
            nodes.add_metric([state], states[state])
        yield nodes

    def _tenants(self) -> Iterable[Metric]:
        """What tenants own, where there are some."""
        found = tenants(self._service.controller, None).tenants
        figures: dict[str, tuple[str, Callable[[Tenant], float]]] = {
            "gpus": ("GPUs a tenant owns.", lambda each: each.gpus),
            "gpus_used": ("GPUs of its own that its jobs hold.", lambda each: each.used),
            "gpus_lent": ("GPUs of its own that others' jobs hold.", lambda each: each.lent),
            "gpus_bad": ("GPUs of its own that are out of service.", lambda each: each.bad),
            "gpus_borrowed": ("GPUs of others that its jobs hold.", lambda each: each.borrowed),
            "jobs_waiting": ("Jobs of a tenant that wait.", lambda each: each.waiting),
        }
        for name, (about, value) in figures.items() if found else ():
            family = GaugeMetricFamily(f"dovetail_tenant_{name}", about, labels=["tenant"])
            for each in found:
                family.add_metric([each.name], value(each))
            yield family

    def _measured(self) -> Iterable[Metric]:
        """The last sample, a few seconds old; what nobody measures is left out."""
        if not self._sampler.samples:
            return
        last = self._sampler.samples[-1]
        figures: tuple[tuple[str, str, float | None, float], ...] = (
            ("gpus", "GPUs there are.", last.gpus, 1),
            ("gpus_held", "GPUs that jobs hold; shared ones by their share.", last.busy, 1),
            ("cpu_cores", "Cores there are.", last.cpu, 0.001),
            ("cpu_cores_granted", "Cores that jobs were granted.", last.cpu_granted, 0.001),
            ("cpu_cores_used", "Cores that jobs use.", last.cpu_used, 0.001),
            ("memory_bytes", "Memory there is.", last.memory, MIB),
            ("memory_granted_bytes", "Memory that jobs were granted.", last.memory_granted, MIB),
            ("memory_used_bytes", "Memory that jobs use.", last.memory_used, MIB),
            ("waiting_seconds_mean", "Mean wait so far of those who wait.", last.age, 1),
        )
        for name, about, value, unit in figures:
            if value is not None:
                yield GaugeMetricFamily(f"dovetail_{name}", about, value=value * unit)


def attach(app: FastAPI, service: Service) -> None:
    """Count the service's decisions."""
    meters = app.state.meters = Meters(service, app.state.sampler)
    service.watchers.append(meters)
    service.readers.append(meters.written)


def _meters(request: Request) -> Meters:
    meters: Meters = request.app.state.meters
    return meters


@router.get("/metrics", response_class=Response)
async def metrics(person: Anyone, meters: Annotated[Meters, Depends(_meters)]) -> Response:
    """All figures, as Prometheus reads them."""
    return Response(generate_latest(meters.registry), media_type=CONTENT_TYPE_LATEST)
