"""A placement of your own. Copy this file, change the order of nodes, and run

dovetail simulate TRACE --cluster 16x8 --placement placement.py:TwoEnds:wide=8
"""

from dataclasses import dataclass
from typing import ClassVar

from dovetail.core.placing import fill, room


@dataclass(frozen=True)
class TwoEnds:
    """Narrow jobs from the first node on, wide ones from the last: they meet less often."""

    wide: int = 4  # a field is a parameter

    relaxed: ClassVar[bool] = True  # it never refuses what enough free GPUs could hold

    def place(self, cluster, ask):
        nodes = range(ask.start, ask.stop)
        if ask.units * ask.gpus >= self.wide:
            nodes = nodes[::-1]
        whole = [node for node in nodes if room(cluster, node, ask) >= ask.units]
        return fill(cluster, ask, whole or nodes)
