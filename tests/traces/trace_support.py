"""Where the public data lies, and a job in one line: `name @submit shape +work what=differs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.model.job import JobSpec
from dovetail.model.trace import TraceJob

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

QUIET = {"id", "name", "submit", "request", "kind", "latency_target"}


def public_data() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the public traces are not beside the project (../shared/data)")
    return SHARED


def told(job: TraceJob) -> str:
    spec, work, breaks, outcome = job
    words = [spec.name, f"@{spec.submit:g}", _shape(spec), f"+{work:g}"]
    for field, default in JobSpec._field_defaults.items():
        value = getattr(spec, field)
        if field not in QUIET and value != default:
            words.append(f"{field}={value:g}" if isinstance(value, float) else f"{field}={value}")
    if breaks:
        words.append("breaks=" + ";".join(f"{at:g}" for at in breaks))
    return " ".join([*words, *([outcome] if outcome != "finished" else [])])


def _shape(spec: JobSpec) -> str:
    """`4` is a gang of four, `2x4` two replicas of four; then share, CPU, memory and types."""
    (alternative,) = spec.request.alternatives
    (group,) = alternative.groups
    each = group.each
    text = f"{group.most}x{each.gpus}" if each.gpus > 1 else f"{spec.request.gpus}"
    text += f"*{each.share}m" if each.share < 1000 else ""
    text += f"/{each.cpu}c" if each.cpu is not None else ""
    text += f"/{each.memory}M" if each.memory is not None else ""
    text += f"/{each.gpu_memory}G" if each.gpu_memory else ""
    return text + (f"[{'|'.join(alternative.types)}]" if alternative.types else "")
