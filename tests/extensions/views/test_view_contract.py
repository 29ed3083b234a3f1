"""Test that summary view and task operations match the archived server's contract."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from tests.compat.contract.differences import CONTRACT, differences, operations, owner_of
from tests.extensions.views.registration import REGISTRATION
from tests.registrations import registrations


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(load_settings()).openapi()


def test_all_contract_operations_of_views_are_served(document: dict[str, Any]) -> None:
    assert operations() == CONTRACT["operations"], "none is left out"
    own = [(one["method"].lower(), one["path"]) for one in operations() if owner_of(one["path"]) == "views"]
    assert len(own) == 8
    assert [place for place in own if place[0] not in document["paths"].get(place[1], {})] == []


def test_views_are_registered_for_the_tests_of_all_features() -> None:
    assert REGISTRATION in registrations()


DRIFTS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda d: d["paths"].pop("/v1/tasks/{task_id}"), "GET /v1/tasks/{task_id}: missing"),
    (lambda d: d["paths"]["/v1/summary-views"].pop("post"), "POST /v1/summary-views: missing"),
    (lambda d: d["components"]["schemas"]["Task"]["properties"].pop("view_id"), "Task.view_id: missing"),
]


@pytest.mark.parametrize(("drift", "line"), DRIFTS, ids=[line for _, line in DRIFTS])
def test_contract_drift_is_detected(document: dict[str, Any], drift: Callable[[dict[str, Any]], Any], line: str) -> None:
    changed = copy.deepcopy(document)
    drift(changed)
    assert line in differences(changed) - differences(document)
