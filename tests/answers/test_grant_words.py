"""Why a job has the cores it has: what its profile says, whatever its own steps are."""

from __future__ import annotations

from pathlib import Path

from staging import Stage

from dovetail.controller.why import why
from dovetail.model.event import Progressed


def test_the_speed_of_a_grant_is_the_profiles_and_never_above_the_best(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "synergy", cluster="1x4,cpus=24,mem=500")
    number = stage.submit(1, 600.0, model="shufflenet")
    stage.until(3.0)
    said = why(stage.controller, number, stage.site.parts)[0].grant
    assert (
        said == "it has 12 cores and 125 GiB: 100% of its best speed, says the profile shufflenet"
    )
    # What a job tells of its steps is in a unit of its own.
    stage.controller.scheduler.step(3.0, [Progressed(number, 40.0, 20.0)])
    assert why(stage.controller, number, stage.site.parts)[0].grant == said
    stage.site.close()
