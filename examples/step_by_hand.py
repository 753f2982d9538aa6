"""The core without a simulator: events of one instant go in, a plan comes out."""

from dovetail.allocators.proportional import Proportional
from dovetail.core.scheduler import Scheduler
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.event import Finished, Submitted
from dovetail.model.job import JobSpec
from dovetail.model.node import Node
from dovetail.model.request import gang
from dovetail.orderings.arrival import Fifo
from dovetail.placements.fits import BestFit
from dovetail.planners import Walk
from dovetail.predictors.history import History
from dovetail.speed.locality import Locality
from dovetail.tenancy.whole import Whole

cluster, costs = Cluster([Node("n0", gpus=8)]), Costs()
parts = (Fifo(), BestFit(), Proportional(), costs)
scheduler = Scheduler(
    cluster, Whole(cluster), lambda view: Walk(view, *parts), History(), Locality(), costs
)
a, b = JobSpec(0, "a", 0.0, gang(6)), JobSpec(1, "b", 0.0, gang(4))
print("at  0 s:", *scheduler.step(0.0, [Submitted(a), Submitted(b)]).actions, sep="\n  ")
print("why not b:", scheduler.explain(b.id).text)
print("at 60 s:", *scheduler.step(60.0, [Finished(a.id)]).actions, sep="\n  ")
