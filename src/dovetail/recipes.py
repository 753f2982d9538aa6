"""The published systems, and our own advice, as compositions of our parts: all on one page.

A recipe is a name for an ordering with its parameters and the parts that go with it. Parameters a
person gives on the command line are added to the recipe's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.ordering import Ordering
from dovetail.core.registry import nearest, split
from dovetail.model.errors import UserError
from dovetail.orderings import ORDERINGS


@dataclass(frozen=True)
class Recipe:
    """What a system is made of, and where it was published."""

    ordering: str
    placement: str
    source: str
    predictor: str = ""
    allocator: str = "proportional"
    #: may another ordering be put inside, with `order=`?
    open: bool = False


RECIPES: dict[str, Recipe] = {
    "yarn-cs": Recipe("fifo", "consolidated", "the YARN capacity scheduler of Philly, ATC'19"),
    "tiresias": Recipe("las:thresholds=3250/7200", "consolidated", "Gu et al., NSDI'19"),
    "tiresias-gittins": Recipe("gittins", "consolidated", "Gu et al., NSDI'19"),
    "helios-qssf": Recipe("sjf", "consolidated:fit=best", "Hu et al., SC'21", "noisy"),
    "themis": Recipe("finish-time-fairness", "best-fit", "Mahajan et al., NSDI'20"),
    "drf": Recipe("dominant-share", "best-fit", "Ghodsi et al., NSDI'11"),
    "easy": Recipe("fifo:backfill=easy", "best-fit", "Lifka, JSSPP'95"),
    "shared": Recipe(
        "fair-share:by=user,displace=lower,min_run=600,patience=86400",
        "best-fit",
        "ours: several people on one machine",
        allocator="tune",
    ),
    "synergy": Recipe("las", "best-fit", "Mohan et al., OSDI'22", allocator="tune", open=True),
    "synergy-optimal": Recipe(
        "las", "best-fit", "Mohan et al., OSDI'22", allocator="optimal", open=True
    ),
}


@dataclass(frozen=True)
class Policy:
    """An ordering ready to be made, as often as needed, and the parts it suggests."""

    name: str
    given: dict[str, str]
    placement: str
    predictor: str
    allocator: str

    def ordering(self) -> Ordering:
        """A new ordering: each domain gets its own."""
        return ORDERINGS.make(self.name, self.given)


DEFAULT_PLACEMENT = "best-fit"
DEFAULT_PREDICTOR = "oracle"
DEFAULT_ALLOCATOR = "proportional"


def policy(text: str) -> Policy:
    """The policy behind `name:key=value,…`, an ordering or a recipe."""
    name, given = split(text)
    recipe = RECIPES.get(name)
    if recipe is None:
        if not ORDERINGS.knows(name):
            names = [*ORDERINGS.names(), *RECIPES]
            raise UserError(f"unknown policy {name!r}{nearest(name, names)}")
        made = Policy(name, given, DEFAULT_PLACEMENT, DEFAULT_PREDICTOR, DEFAULT_ALLOCATOR)
    else:
        base, own = split(recipe.ordering)
        if recipe.open and "order" in given:
            base, own = given.pop("order"), {}
        predictor = recipe.predictor or DEFAULT_PREDICTOR
        made = Policy(base, {**own, **given}, recipe.placement, predictor, recipe.allocator)
    made.ordering()
    return made
