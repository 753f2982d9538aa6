"""The yardstick: what solvers make of the same question, as far as it can be put on real nodes.

Synergy-Opt (Mohan et al., OSDI'22) in two stages. First the ideal amounts if all nodes were one,
then a linear program that places as much of them as nodes can hold. What the program left in
fractions is seated whole, wide jobs first, and everything is filled and improved by exchanges as
`tune` does. It looks at all jobs anew each time, so it costs more; a rearrangement is made only if
it earns the moves back, otherwise jobs stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from dovetail.allocators.exchanging import exchange
from dovetail.allocators.fractional import NOISE, Group, fractions
from dovetail.allocators.ideal import ideal
from dovetail.allocators.program import Effort
from dovetail.allocators.trial import Trial
from dovetail.allocators.tune import SMALL, Tables, Tune
from dovetail.core.claims import Arrangement, Claim, Occasion, Point, Server


@dataclass(frozen=True)
class Optimal(Tune):
    """Solves for the amounts and the places of all jobs at once."""

    exchanges: int = 400
    #: relative distance from the best at which the solver may stop
    gap: float = 1e-3

    def arrange(self, occasion: Occasion) -> Arrangement:
        """The better of two: everybody seated anew, or changes around those who come and go."""
        kept = self.chosen(occasion)
        anew = self._anew(occasion) if occasion.seats else None
        if anew is None:
            return kept.arrangement()
        (few, before), (many, after) = kept.worth(), anew.worth()
        if many < few or (occasion.span_penalty and anew.spread() > kept.spread()):
            return kept.arrangement()
        moves = _moves(anew)
        worth_it = (after - before) * self.payback > (occasion.move * moves if moves else 0.0)
        return (anew if worth_it else kept).arrangement()

    def _anew(self, occasion: Occasion) -> Trial | None:
        """Everybody off their nodes, and back where programs say; None: somebody lost a seat."""
        trial = Trial(occasion, self.filling(occasion))
        staying = [job for job in occasion.seating.claims if job not in set(occasion.going)]
        mine = [job for job in staying if _movable(trial, job)]
        for job in mine:
            trial.rise(job)
        claims = [*[trial.claim(job) for job in mine], *occasion.coming]
        left = self._seat_whole(trial, claims)
        left.sort(key=lambda claim: (-claim.gpus, -trial.appetite(claim), claim.job))
        tables = Tables(trial)
        for claim in left:
            spots = tables.find(claim)
            if spots is not None:
                trial.sit(claim.job, spots)
            elif claim.job in occasion.seating.claims:
                return None
        nodes = {node for node in trial.desks if trial.desks[node].jobs}
        trial.settle(nodes)
        thorough = occasion.stop - occasion.start <= SMALL
        exchange(trial, nodes, self.budget(occasion), float("inf"), thorough)
        return trial

    def _seat_whole(self, trial: Trial, claims: list[Claim]) -> list[Claim]:
        """Seat the jobs that the program put on one node whole; returns the others."""
        occasion, effort = trial.occasion, Effort(gap=self.gap)
        desks = [trial.desk(node) for node in range(occasion.start, occasion.stop)]
        servers = [Server(desk.node, desk.gpus, desk.cpu, desk.memory) for desk in desks]
        cpu, memory = sum(s.cpu for s in servers), sum(s.memory for s in servers)
        points = ideal(claims, cpu, memory, effort).points
        kinds = _by_point(claims, points)
        groups = [Group(of[0].gpus, point, len(of)) for point, of in kinds]
        left: list[Claim] = []
        for (_, of), shares in zip(kinds, fractions(servers, groups, effort), strict=True):
            for server, share in shares.items():
                for _ in range(int(share + NOISE)):
                    claim = _who(of, servers[server].node)
                    if trial.desk(servers[server].node).seats(claim.curve.points[0]) < claim.gpus:
                        break
                    of.remove(claim)
                    trial.sit(claim.job, ((servers[server].node, claim.gpus),))
            left += of
        return left


def _movable(trial: Trial, job: int) -> bool:
    """Does a job sit in this pool, on nodes that would take it again?"""
    occasion, nodes = trial.occasion, [node for node, _ in trial.where(job)]
    mine = occasion.start <= nodes[0] < occasion.stop
    return mine and not any(node in occasion.cluster.closed for node in nodes)


def _by_point(claims: list[Claim], points: tuple[Point, ...]) -> list[tuple[Point, list[Claim]]]:
    """Claims of one curve, size and point together."""
    pairs = sorted(
        zip(claims, points, strict=True),
        key=lambda pair: (pair[0].gpus, pair[1], pair[0].curve.points, pair[0].job),
    )
    grouped = groupby(pairs, key=lambda pair: (pair[0].gpus, pair[1], pair[0].curve.points))
    return [(key[1], [claim for claim, _ in members]) for key, members in grouped]


def _who(claims: list[Claim], node: int) -> Claim:
    """One of several alike: the one that is on the node already, if there is one."""
    for claim in claims:
        if len(claim.held) == 1 and claim.held[0].node == node:
            return claim
    return next((claim for claim in claims if not claim.held), claims[0])


def _moves(trial: Trial) -> float:
    """How much work moving everybody who sits elsewhere now would cost, per second of a move."""
    seated = trial.occasion.seating.claims
    return sum(
        seated[job].curve.fair.rate
        for job, spots in trial.spots.items()
        if job in seated and spots != tuple((piece.node, piece.gpus) for piece in seated[job].held)
    )
