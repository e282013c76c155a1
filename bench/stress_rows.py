"""The rows of watches under stress: ``watch_stress.py`` against a server of its own, with the server's memory beside it.

And of watches at ease: the same program against a real kube-apiserver, to see what is usual.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from report import Row, at_most
from testbed import HERE, ControlPlane, PorchProcess, address_of, resident_megabytes

P99_MILLISECONDS = 50.0
"""What is asked of a hundred watchers (issue 5)."""
ASKED_OF = 100
"""Watchers up to which a delay is asked for."""
GROWTH_MEGABYTES = 150.0
"""What a thousand watchers over TLS may add; 60 KB each is usual (``libraries.md`` 1.3)."""
SAMPLE_SECONDS = 0.5


@dataclass(frozen=True)
class Load:
    """One run: watchers, events per second, seconds."""

    watchers: int
    rate: int
    seconds: int


FULL = (Load(100, 200, 60), Load(1000, 10, 60))
SHORT = (Load(20, 50, 4),)
FAN_OUT_FULL = Load(100, 100, 15)
FAN_OUT_SHORT = Load(20, 50, 3)


def stress_rows(server: PorchProcess, loads: tuple[Load, ...]) -> list[Row]:
    """Put each load on the server; raise when a watcher saw anything but every event, once and in order."""
    return [row for number, load in enumerate(loads) for row in _rows(server, load, f"stress-{number}")]


def fan_out_row(server: PorchProcess, real: ControlPlane | None, load: Load) -> Row:
    """Measure how long events take to all watchers, here and at a kube-apiserver; nothing is asked of it."""
    what = f"watch of ConfigMaps, {load.watchers} watchers, {load.rate} events/s: p50 / p99 from the write's answer"
    ours = _delays(_run(server.url, address_of(server).identity, load, "default"))
    if real is None:
        return Row(what, "–", "", ours)
    certificate, key = map(str, real.client_certificate)
    theirs = _delays(_run(real.url, ("--cert", certificate, "--key", key), load, "default"))
    print(f"  fan-out: {ours}, {theirs}", flush=True)
    return Row(what, f"{theirs} (kube-apiserver)", "", ours)


def _delays(result: dict[str, Any]) -> str:
    delays = result["from_answer_ms"]
    return f"{delays['p50']} / {delays['p99']} ms"


def _rows(server: PorchProcess, load: Load, namespace: str) -> list[Row]:
    client = server.client()
    client.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    client.close()
    memory = _Memory(server.pid)
    with memory:
        result = _run(server.url, address_of(server).identity, load, namespace)
    print(f"  {result}, memory {memory.before:.0f} → {memory.highest:.0f} MB", flush=True)
    if result["watchers_with_wrong_events"] or result["errors"]:
        raise RuntimeError(f"not every watcher saw every event once and in order: {result}")
    what = (
        f"stress: {load.watchers} watchers, {result['events_per_s']:.0f} of {load.rate} events/s for {load.seconds} s"
    )
    cut = result["stalled_and_cut_off"]
    everything = f"{result['deliveries']} deliveries, {result['resumes']} resumes, {cut} cut off"
    delays = result["from_answer_ms"]
    rows = [Row(what, "–", "each event once, in order", everything, True)]
    if load.watchers <= ASKED_OF:
        rows.append(at_most("the same: p99 from the write's answer", "–", P99_MILLISECONDS, delays["p99"]))
    else:
        rows.append(Row("the same: p50 / p99 from the write's answer", "–", "", _delays(result)))
    rows.append(at_most("the same: memory added at most", "–", GROWTH_MEGABYTES, memory.highest - memory.before, "MB"))
    return rows


def _run(url: str, identity: Sequence[str], load: Load, namespace: str) -> dict[str, Any]:
    arguments = [url, namespace, str(load.watchers), str(load.rate), str(load.seconds)]
    done = subprocess.run(
        [sys.executable, str(HERE / "watch_stress.py"), *arguments, *identity],
        capture_output=True,
        text=True,
        check=False,
        timeout=load.seconds * 5 + 60,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, Any] = json.loads(done.stdout)
    return result


class _Memory:
    """Looks at a process's memory meanwhile."""

    def __init__(self, pid: int) -> None:
        self.before = self.highest = resident_megabytes(pid)
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="memory", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self.highest = max(self.highest, resident_megabytes(self._pid))
