"""What the differential test takes for equal, and what it must not."""

import json
from typing import Any

import pytest
from conversation import Answer, Case, Send, fill, namespace_of
from normal import Normaliser, differences

UID = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
OTHER = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
JSON = [("Content-Type", "application/json"), ("Audit-Id", UID)]


def normal(*bodies: Any) -> Any:
    normaliser = Normaliser()
    answers = [Answer(200, JSON, json.dumps(body).encode()) for body in bodies]
    normaliser.see(answers[:-1])
    return normaliser.answer(answers[-1], lambda body: body)


def revision(uid: str, number: int) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": str(number), "creationTimestamp": "2026-01-02T03:04:05Z"}}


def test_uids_and_revisions_are_numbered_so_that_the_same_object_still_shows() -> None:
    same, other = normal(revision(UID, 7), revision(UID, 7)), normal(revision(UID, 7), revision(OTHER, 9))

    assert same["body"]["metadata"] == {
        "uid": "<uid 1>",
        "resourceVersion": "<revision 1>",
        "creationTimestamp": "<time>",
    }
    assert other["body"]["metadata"]["uid"] == "<uid 2>"
    assert differences(same, other) == [
        ("body.metadata.uid", "<uid 1>", "<uid 2>"),
        ("body.metadata.resourceVersion", "<revision 1>", "<revision 2>"),
    ]


def test_of_some_headers_only_the_presence_counts() -> None:
    assert normal({})["headers"] == {"content-type": ["application/json"], "audit-id": "<present>"}


def test_causes_have_no_order_and_are_told_once() -> None:
    one, two = {"field": "a", "message": "x"}, {"field": "b", "message": "y"}
    status = {"message": 'X "x" is invalid: [a: x, b: y]', "details": {"causes": [two, one, two]}}
    turned = {"message": 'X "x" is invalid: [b: y, a: x]', "details": {"causes": [one, two]}}

    assert differences(normal(status), normal(turned)) == []


@pytest.mark.parametrize(
    ("recorded", "found", "where"),
    [
        pytest.param({"a": 1}, {"a": True}, "a", id="true-is-not-one"),
        pytest.param({"a": 1}, {"a": 1.0}, "a", id="a-float-is-no-integer"),
        pytest.param({"a": None}, {}, "a", id="null-is-not-absent"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, "a.1", id="one-more-item"),
        pytest.param({"a": {"b": []}}, {"a": {"b": {}}}, "a.b", id="a-list-is-no-object"),
    ],
)
def test_what_a_client_can_tell_apart_differs(recorded: Any, found: Any, where: str) -> None:
    assert [path for path, _, _ in differences(recorded, found)] == [where]


def test_the_events_of_a_watch_are_compared_one_by_one() -> None:
    lines = b'{"type":"ADDED","object":{}}\n{"type":"DELETED","object":{}}\n'
    answer = Normaliser().answer(Answer(200, JSON, lines), lambda body: body)

    assert [event["type"] for event in answer["body"]["events"]] == ["ADDED", "DELETED"]


def test_requests_are_filled_with_the_namespace_and_with_earlier_answers() -> None:
    earlier = [Answer(201, JSON, json.dumps({"metadata": {"uid": UID, "owners": ["x"]}}).encode())]
    request = Send("PUT", "/{ns}/a", {"uid": "<0:metadata.uid>"}, {"X": "<0:metadata.owners.0>"})

    filled = fill(request, "there", earlier)

    assert (filled.path, filled.body, filled.headers) == ("/there/a", json.dumps({"uid": UID}).encode(), {"X": "x"})


def test_a_case_has_a_namespace_of_its_own_that_the_server_accepts() -> None:
    case = Case("list a page's rest, " + "x" * 80, Send("GET", "/"))

    assert namespace_of(case).startswith("d-list-a-page-s-rest-xxx")
    assert len(namespace_of(case)) <= 63
