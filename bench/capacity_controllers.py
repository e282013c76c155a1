"""What controllers take beside so many PackageVariants, and the server below them; a part of ``capacity.py``."""

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from testbed import CONFIG, PorchClient, PorchProcess, resident_megabytes

if TYPE_CHECKING:
    from controllers_process import ControllersProcess

Json = dict[str, Any]
PATIENCE: Final = 1800.0
REST_SECONDS: Final = 5.0
"""What a start needed is given back to the system within two seconds."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Memory in MB of the controllers with no variant and with ``number`` of them."""

    number: int
    none: float
    all: float

    @property
    def each(self) -> float:
        """Kilobytes of one variant."""
        return (self.all - self.none) * 1024 / self.number


def measured(server: PorchProcess, folder: Path, upstream: str, package: str, downstream: str, number: int) -> Beside:
    """Make variants of one published package, wait for their drafts, and look at controllers that have just started and rest."""
    # The tests' folder is on the path once testbed is imported.
    from controllers_process import ControllersProcess

    controllers = ControllersProcess(server.kubeconfig, "default", folder / "controllers.log")
    try:
        none = _resting(controllers)
        with closing(server.client()) as client:
            for one in range(number):
                _create(client, f"variant-{one:05d}", upstream, package, downstream)
            _wait_until_ready(client, number)
        controllers.kill()
        return Beside(number, none, _resting(controllers))
    finally:
        controllers.kill()


def _resting(controllers: "ControllersProcess") -> float:
    controllers.start()
    time.sleep(REST_SECONDS)
    last = 0.0
    while (now := resident_megabytes(controllers.pid)) - last > 1:  # until a look at everything is over
        last = now
        time.sleep(REST_SECONDS)
    return now


def _create(client: PorchClient, name: str, upstream: str, package: str, downstream: str) -> None:
    body = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": name},
        "spec": {
            "upstream": {"repo": upstream, "package": package, "revision": 1},
            "downstream": {"repo": downstream, "package": name},
        },
    }
    answer = client.request("POST", f"{CONFIG}/namespaces/default/packagevariants", body)
    if answer.code != 201:  # Created
        raise RuntimeError(answer.body.decode())


def _wait_until_ready(client: PorchClient, number: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        items = client.request("GET", f"{CONFIG}/namespaces/default/packagevariants").object["items"]
        if sum(_is_ready(item) for item in items) == number:
            return
        time.sleep(1)
    raise RuntimeError(f"{number} variants were not ready after {PATIENCE} s")


def _is_ready(item: Json) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
