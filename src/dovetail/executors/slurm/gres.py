"""GPUs as Slurm writes them: `gpu:v100:4(S:0)`, `gres:gpu:2`, `gpu:v100:2(IDX:0-1)`. Pure text."""

from __future__ import annotations

import re
from typing import NamedTuple

from dovetail.executors.slurm.hostlists import numbers

GPU = re.compile(
    r"(?:^|[,:/])gpu(?::(?P<type>[^:,()=]*[^\d:,()=][^:,()=]*))?[:=](?P<count>\d+)"
    r"(?:\((?P<more>[^)]*)\))?"
)


class Gpus(NamedTuple):
    """What one text says."""

    number: int = 0
    #: types, in order; several are joined by +
    type: str = ""
    #: which of the node's devices, where it says so
    indices: tuple[int, ...] = ()


def gpus(text: str) -> Gpus:
    """All GPUs a text speaks of; none, if it speaks of none."""
    count, types, indices = 0, dict[str, None](), list[int]()
    for found in GPU.finditer(text or ""):
        count += int(found["count"])
        if found["type"]:
            types[found["type"]] = None
        where = (found["more"] or "").partition("IDX:")[2]
        if where and where != "N/A":
            indices += numbers(where)
    return Gpus(count, "+".join(types), tuple(indices))
