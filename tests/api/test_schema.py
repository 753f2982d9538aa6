"""Whatever the schema of the API allows, and much that it does not, gets a proper answer.

Schemathesis makes up requests for every operation, as people of every role. None may be answered
with a status of 500 or above or with one the schema does not name, and the controller must be whole
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import requests
from hosting import PATIENCE, Hosted
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from dovetail.model.live import About

GOOD, BAD = "positive", "negative"
ROLES = ("admin", "user", "reader", "")
LONG = [
    pytest.param(role, mode, 10, marks=pytest.mark.real, id=f"{role or 'nobody'}-{mode}")
    for role in ROLES
    for mode in (GOOD, BAD)
]

LEFT_OUT = "/v1/end"
"""It ends the controller, as it should."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with Hosted(tmp_path_factory.mktemp("schema") / "data") as host, host.box() as box:
        for fields in ({}, {"held": True}, {"array": "3", "held": True}):
            box.submit(["sleep", "600"], **fields)
        yield host


def checks() -> list[Any]:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    return [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]


def operations(host: Hosted) -> list[Any]:
    # Loading it takes seconds: whoever only collects tests need not wait for that.
    import schemathesis

    schema = schemathesis.openapi.from_dict(host.app.openapi())
    found = [each.ok() for each in schema.get_all_operations()]
    assert len(found) > 15
    return [each for each in found if each.path != LEFT_OUT]


@pytest.mark.parametrize(
    ("role", "mode", "examples"), [("admin", GOOD, 2), ("user", BAD, 2), *LONG]
)
def test_every_request_gets_a_proper_answer(
    shared: Hosted, role: str, mode: str, examples: int
) -> None:
    from schemathesis import GenerationMode

    headers = {"Authorization": f"Bearer {shared.token(role)}"} if role else {}
    with requests.Session() as session:
        session.trust_env = False
        # Making a request up may take so long that the controller hangs up.
        session.headers["Connection"] = "close"
        for operation in operations(shared):

            @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
            def answers(case: Any) -> None:
                said = case.call(
                    base_url=shared.url, session=session, headers=headers, timeout=PATIENCE
                )
                case.validate_response(said, checks=checks())
                assert "Traceback" not in said.text
                if not role:
                    assert said.status_code == 401

            # Where a request has nothing in it, nothing can be wrong with it.
            with suppress(Unsatisfiable):
                answers()
    with shared.box() as box:
        assert isinstance(box.about(), About)
    shared.inside(lambda service: service.controller.scheduler.validate())
