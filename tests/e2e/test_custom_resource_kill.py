"""A server that is killed in the middle of removing a custom resource finishes it after the next start."""

import time
from collections.abc import Iterator

import pytest
from custom_kinds import DEFINITIONS, definition, widget
from eventually import eventually
from porch_client import PorchClient
from porch_process import PorchProcess

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
NAME = f"{DEFINITIONS}/widgets.example.com"
INSTANCES = 400


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    running = PorchProcess(tmp_path_factory.mktemp("porch") / "data")
    running.start()
    yield running
    running.stop()


def established(client: PorchClient) -> None:
    conditions = client.request("GET", NAME).object["status"]["conditions"] or []
    assert ("Established", "True") in {(one["type"], one["status"]) for one in conditions}


def gone(client: PorchClient, path: str = NAME) -> None:
    assert client.request("GET", path).code == 404


def define(client: PorchClient) -> None:
    assert client.request("POST", DEFINITIONS, definition()).code == 201
    eventually(lambda: established(client))


@pytest.mark.parametrize("milliseconds", [0, 5, 20, 60, 150])
def test_a_definition_killed_while_it_goes_is_gone_after_the_next_start(
    server: PorchProcess, milliseconds: int
) -> None:
    client = server.client()
    define(client)
    for number in range(INSTANCES):
        assert client.request("POST", WIDGETS, widget(f"w{number}")).code == 201
    assert client.request("DELETE", NAME).code == 200

    time.sleep(milliseconds / 1000)
    server.kill()
    client.close()
    server.start()
    client = server.client()
    eventually(lambda: gone(client))
    define(client)

    assert client.request("GET", WIDGETS).object["items"] == [], "nothing of the former kind comes back"
    client.close()


def test_a_finalizer_that_held_its_definition_before_a_kill_still_does_and_can_be_removed(server: PorchProcess) -> None:
    client = server.client()
    define(client)
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    assert client.request("POST", WIDGETS, held).code == 201
    client.request("DELETE", NAME)
    server.kill()
    client.close()
    server.start()
    client = server.client()

    def marked() -> None:
        assert client.request("GET", f"{WIDGETS}/held").object["metadata"].get("deletionTimestamp")

    eventually(marked)
    patch = b'{"metadata":{"finalizers":null}}'
    answer = client.request("PATCH", f"{WIDGETS}/held", patch, content_type="application/merge-patch+json")
    assert answer.code == 200, answer.body
    eventually(lambda: gone(client))
    client.close()


def test_objects_and_versions_are_served_at_once_after_a_restart(server: PorchProcess) -> None:
    client = server.client()
    define(client)
    client.request("POST", WIDGETS, widget("kept", size=4))
    before = client.request("GET", f"{WIDGETS}/kept").body
    server.stop()
    client.close()
    server.start()
    client = server.client()

    assert client.request("GET", f"{WIDGETS}/kept").body == before
    client.close()
