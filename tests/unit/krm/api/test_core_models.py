"""The models of core kinds and of Repository agree with the wire: names, and what real objects hold."""

from typing import Any

import pytest
from pydantic import BaseModel

from krm.api.config import Repository
from krm.api.core import ConfigMap, Event, Namespace, Secret

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("model", "wire"),
    [
        pytest.param(ConfigMap, {"data": {"a": "b"}, "binaryData": {"c": "/w=="}, "immutable": True}, id="configmap"),
        pytest.param(Secret, {"type": "Opaque", "stringData": {"a": "b"}}, id="secret"),
        pytest.param(
            Namespace, {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}, id="namespace"
        ),
        pytest.param(
            Event,
            {
                "involvedObject": {"apiVersion": "v1", "fieldPath": "x"},
                "reportingComponent": "c",
                "series": {"count": 2},
            },
            id="event",
        ),
        pytest.param(
            Repository,
            {
                "spec": {
                    "type": "git",
                    "git": {"repo": "r", "createBranch": True, "secretRef": {"name": "s"}},
                    "sync": {"runOnceAt": "2026-01-02T03:04:05Z"},
                },
                "status": {"packageCount": 3, "gitCommitHash": "abc", "observedRunOnceAt": "2026-01-02T03:04:05Z"},
            },
            id="repository",
        ),
    ],
)
def test_wire_objects_survive_the_model(model: type[BaseModel], wire: Json) -> None:
    parsed = model.model_validate(wire)

    assert parsed.model_dump(mode="json", by_alias=True, exclude_unset=True) == wire
