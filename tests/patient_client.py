"""A client that tries again when it is told to, as every client of Kubernetes does (``kube-api.md`` 1.11).

A replica that has not read a repository yet, or one that has too much to do, says so with Retry-After; client-go comes back up to
ten times, and so does this one. What kube-apiserver says while no server is there carries no such header.
"""

import time

from porch_client import Answer, Object, PorchClient

ATTEMPTS = 10
RETRIABLE = {429, 503}


class PatientClient(PorchClient):
    """Speaks to a server of which there are several."""

    def request(
        self,
        method: str,
        path: str,
        body: Object | bytes | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """Send one request, again while the answer says so, and return the answer, whatever its code."""
        for _ in range(ATTEMPTS):
            answer = super().request(method, path, body, content_type=content_type, accept=accept)
            wait = answer.headers.get("retry-after", "")
            if answer.code not in RETRIABLE or not wait.isdigit():
                break
            time.sleep(int(wait))
        return answer
