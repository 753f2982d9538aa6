"""Who owns what is changed before anything has happened."""

from __future__ import annotations

from pathlib import Path

from virtual import Site
from workbench import owners, spec

from dovetail.controller.parts import Parts
from dovetail.controller.replaying import first_difference, remembered
from dovetail.model.trace import TraceJob


def test_a_change_before_the_first_batch_is_replayed_alike(tmp_path: Path) -> None:
    site = Site(tmp_path, "2x4", Parts("fifo"), oracle=False)
    controller = site.open()
    tenants = owners("cells", red="nodes = 1", blue="gpus = [2]")
    controller.reconfigure(Parts("fifo", tenancy=tenants.written()))
    controller.turn()
    jobs = [spec(1, 4, 1.0, tenant="red", length=5.0), spec(2, 2, 1.0, tenant="blue", length=5.0)]
    site.drive(controller, [TraceJob(job, 5.0, ()) for job in jobs])
    assert not controller.scheduler.jobs
    assert first_difference(controller.journal, remembered(controller.journal.store)) is None
    site.close()
