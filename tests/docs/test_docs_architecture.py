"""`docs/design/architecture.md` names functions that exist, and all that its one job meets."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import FrameType

import pytest
from doc_support import ROOT

from dovetail.simulator.experiment import Replay, replay

PAGE = (ROOT / "docs" / "design" / "architecture.md").read_text()
SOURCE = ROOT / "src" / "dovetail"
PACKAGES = sorted(path.stem for path in SOURCE.iterdir() if path.name != "__init__.py")
NAMES = sorted(set(re.findall(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`", PAGE)))
TWO_JOBS = re.search(r"```\n(job_id,.*?)```", PAGE, re.DOTALL)


def resolved(name: str) -> object:
    """The object behind a dotted name below the package."""
    head, *rest = name.split(".")
    found: object = importlib.import_module(f"dovetail.{head}")
    for part in rest:
        if inspect.ismodule(found) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = inspect.getattr_static(found, part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_name_on_the_page_exists(name: str) -> None:
    try:
        resolved(name)
    except (AttributeError, ModuleNotFoundError) as error:
        pytest.fail(f"docs/design/architecture.md names {name}, which does not exist ({error})")


def test_the_page_names_every_public_function_the_job_meets(tmp_path: Path) -> None:
    assert TWO_JOBS is not None
    trace = tmp_path / "two.csv"
    trace.write_text(TWO_JOBS[1])
    met: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(SOURCE):
            module = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
            met.add(f"{module}.{frame.f_code.co_qualname}".replace("__init__.", ""))

    sys.setprofile(note)
    try:
        replay(Replay(str(trace), "1x4", "srtf"))
    finally:
        sys.setprofile(None)
    public = {name for name in met if not re.search(r"[._<]_|<", name)}
    assert len(public) > 50
    missing = sorted(public - set(NAMES))
    assert not missing, f"docs/design/architecture.md does not name {', '.join(missing)}"
