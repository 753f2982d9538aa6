"""What all tests share: books checked after every test, the command line, the public data."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from dovetail.core.scheduler import Scheduler

# The workbench, the reader of one-line rows and the contracts serve every folder.
sys.path.append(str(Path(__file__).parent / "core"))
sys.path.append(str(Path(__file__).parent / "contracts"))
# So does the controller on virtual time.
sys.path.append(str(Path(__file__).parent / "controller"))
# And controllers to talk to.
sys.path.append(str(Path(__file__).parent / "api"))
pytest.register_assert_rewrite("rows", "workbench", "executor_contract", "hosting")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

settings.register_profile(
    "dovetail",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("dovetail")


def pytest_collection_finish() -> None:
    """What is loaded by now stays: no search for garbage looks at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def books_are_in_order(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Validate every scheduler a test made, unless the test failed anyway."""
    made: deque[Scheduler] = deque(maxlen=50)
    begin = Scheduler.__init__

    def remember(self: Scheduler, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        made.append(self)

    monkeypatch.setattr(Scheduler, "__init__", remember)
    yield
    if getattr(request.node, "went_well", False):
        for scheduler in made:
            scheduler.validate()


@pytest.fixture(scope="session", autouse=True)
def nothing_outlives_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Controllers and jobs of tests that failed before they could end them."""
    from remains import end

    yield
    end(tmp_path_factory.getbasetemp())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Let fixtures know how the test itself went."""
    if call.when == "call":
        item.went_well = call.excinfo is None  # type: ignore[attr-defined]
    return (yield)


@pytest.fixture
def public_traces() -> Path:
    """The folder of public traces beside the project."""
    if not SHARED.is_dir():
        pytest.skip("the public traces are not beside the project (../shared/data)")
    return SHARED / "traces"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Any]:
    """A controller that really runs, for one test."""
    from hosting import Hosted

    with Hosted(tmp_path / "data") as made:
        yield made


@pytest.fixture
def box(host: Any) -> Iterator[Any]:
    """A line to it."""
    with host.box() as made:
        yield made


@cache
def commands() -> Callable[..., Any]:
    """The tree of commands: making it takes longer than most of them."""
    from typer.main import get_command

    from dovetail.cli.app import app

    return get_command(app)


class Answer(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def dovetail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """Run a command as a person would, without the cost of a new process."""
    from dovetail.cli import main

    monkeypatch.setattr("dovetail.cli.app.app", commands())

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["dovetail", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "80")
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return Answer(code, *capsys.readouterr())

    return run
