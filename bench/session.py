"""One kept HTTPS connection to a Porch, and the bodies that the load programs send."""

import argparse
import http.client
import json
import ssl
import urllib.parse
from typing import Any

Json = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  key: value\n"
TIMEOUT = 300.0
"""Seconds; only a server that hangs takes so long."""
REFUSED = 300


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, what: str, code: int, body: bytes) -> None:
        super().__init__(f"{what}: {code} {body[:500]!r}")
        self.code = code


class Session:
    """Speaks JSON to one namespace; not for several threads."""

    def __init__(self, url: str, namespace: str, certificate: str | None, key: str | None) -> None:
        address = urllib.parse.urlparse(url)
        if not address.hostname:
            raise ValueError(f"{url} names no host")
        if address.scheme == "https":
            # A yardstick: what is measured is on loopback, and upstream's certificate is nobody's.
            context = ssl._create_unverified_context()  # noqa: S323, SLF001
            if certificate:
                context.load_cert_chain(certificate, key)
            self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                address.hostname, address.port, context=context, timeout=TIMEOUT
            )
        else:
            self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=TIMEOUT)
        self._base = f"/apis/porch.kpt.dev/v1alpha1/namespaces/{namespace}/"

    def fetch(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> bytes:
        """Send one request and return the body of its answer; a path that begins with / is taken as it is.

        Raises:
            Refused: the answer is no success.
        """
        data = None if body is None else json.dumps(body)
        headers = {"Accept": accept, "Content-Type": content_type}
        target = path if path.startswith("/") else self._base + path
        self._connection.request(method, target, data, headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= REFUSED:
            raise Refused(f"{method} {path}", response.status, answer)
        return answer

    def call(self, method: str, path: str, body: Json | None = None, *, content_type: str = "application/json") -> Json:
        """Send one request and return the decoded answer."""
        answer: Json = json.loads(self.fetch(method, path, body, content_type=content_type))
        return answer


def new_revision(repository: str, package: str) -> Json:
    """Build a package revision made by init."""
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {},
        "spec": {
            "packageName": package,
            "workspaceName": "v1",
            "repository": repository,
            "lifecycle": "Draft",
            "tasks": [{"type": "init", "init": {"description": "bench"}}],
        },
    }


def watch_options(description: str | None) -> argparse.Namespace:
    """Read the command line of a program that watches, and that writes in a process of its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("url")
    parser.add_argument("namespace")
    parser.add_argument("watchers", type=int)
    parser.add_argument("rate", type=float)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--write", action="store_true", help="be the writer")
    return parser.parse_args()


def percentile(values: list[float], quantile: float) -> float:
    """Return a percentile, one decimal; 0 of nothing."""
    if not values:
        return 0.0
    return round(sorted(values)[min(len(values) - 1, int(len(values) * quantile))], 1)
