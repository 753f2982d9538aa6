"""The NVIDIA GPUs of this machine, asked of the driver's management library.

No library, no driver and no GPU are the same answer: none. Numbers are those of the PCI bus, which
is what jobs are told to count by. Knows no jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

MIB = 2**20
VENDOR = {"nvidia", "tesla", "geforce", "quadro", "graphics", "device"}
SERIES = {"rtx", "gtx", "titan"}
UNKNOWN = {0}
"""The users of a device that does not answer: it is nobody's to give out."""
VARIANTS = {"ti", "super", "ada"}


class Gpu(NamedTuple):
    """One device."""

    number: int
    #: short name: h100, rtx4090
    type: str
    #: MiB
    memory: int
    identifier: str


def gpus(visible: str | None = None) -> list[Gpu]:
    """The devices, of these numbers or identifiers only where they are named."""
    with _library() as library:
        if library is None:
            return []
        found = [_gpu(library, number) for number in range(library.nvmlDeviceGetCount())]
    return found if visible is None else [gpu for gpu in found if _named(gpu, visible)]


def users(devices: Sequence[Gpu]) -> list[set[int]]:
    """For each device the processes that compute on it."""
    with _library() as library:
        return [UNKNOWN if library is None else _users(library, gpu) for gpu in devices]


def _users(library: ModuleType, gpu: Gpu) -> set[int]:
    try:
        handle = library.nvmlDeviceGetHandleByIndex(gpu.number)
        found = library.nvmlDeviceGetComputeRunningProcesses(handle)
    except library.NVMLError:
        return UNKNOWN
    return {int(each.pid) for each in found}


def utilisation(devices: Sequence[Gpu]) -> list[float | None]:
    """For each device the percent of time it computed lately; None: it does not say."""
    with _library() as library:
        return [None if library is None else _utilisation(library, gpu) for gpu in devices]


def _utilisation(library: ModuleType, gpu: Gpu) -> float | None:
    try:
        handle = library.nvmlDeviceGetHandleByIndex(gpu.number)
        return float(library.nvmlDeviceGetUtilizationRates(handle).gpu)
    except library.NVMLError:
        return None


def short_name(product: str) -> str:
    """`NVIDIA A100-SXM4-80GB` is an a100, `NVIDIA GeForce RTX 4090` an rtx4090."""
    words = [word for word in re.split(r"[\s-]+", product.lower()) if word not in VENDOR]
    if not words:
        return "gpu"
    kept = words[:2] if words[0] in SERIES else words[:1]
    rest = words[len(kept) :]
    return "".join(kept + [word for word in rest[:1] if word in VARIANTS])


def _gpu(library: ModuleType, number: int) -> Gpu:
    handle = library.nvmlDeviceGetHandleByIndex(number)
    memory = int(library.nvmlDeviceGetMemoryInfo(handle).total) // MIB
    name = short_name(_text(library.nvmlDeviceGetName(handle)))
    return Gpu(number, name, memory, _text(library.nvmlDeviceGetUUID(handle)))


def _named(gpu: Gpu, visible: str) -> bool:
    names = [name.strip() for name in visible.split(",") if name.strip()]
    return any(name == str(gpu.number) or gpu.identifier.startswith(name) for name in names)


def _text(given: Any) -> str:
    """Old versions of the library answer in bytes."""
    return given.decode() if isinstance(given, bytes) else str(given)


@contextmanager
def _library() -> Iterator[ModuleType | None]:
    """The library while it is connected to the driver."""
    try:
        import pynvml  # noqa: PLC0415 (most machines that simulate have no use for it)

        pynvml.nvmlInit()
    except Exception:
        # Absent, or broken in one of many ways: either way there is no GPU to give out.
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()
