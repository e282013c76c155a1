"""Somebody who asks all the time, so that a change which is to be noticed by nobody is seen to be noticed by nobody."""

from collections import Counter
from threading import Event, Thread
from types import TracebackType
from typing import Self

from control_plane import ControlPlane
from porch_client import PORCH, PorchClient

REVISIONS = f"{PORCH}/namespaces/default/packagerevisions"


class SteadyRequests:
    """Somebody who lists package revisions through kube-apiserver all the time; ``codes`` counts the answers."""

    def __init__(self, plane: ControlPlane) -> None:
        self.codes: Counter[int | str] = Counter()
        self._client = PorchClient(plane.url, ca=plane.ca, certificate=plane.client_certificate)
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=60)
        self._client.close()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            try:
                answer = self._client.request("GET", REVISIONS)
                self.codes[answer.code if answer.code == 200 else answer.body.decode(errors="replace")] += 1
            except OSError as error:
                self.codes[str(error)] += 1
