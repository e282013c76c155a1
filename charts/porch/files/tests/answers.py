"""What ``helm test`` runs in a Pod of the release: porch.kpt.dev is registered, available and answers, through kube-apiserver.

``KUBERNETES_HOST``, ``TOKEN_FILE`` and ``CA_FILE`` are what a Pod has, unless they say something else.
"""

import http.client
import json
import os
import ssl
import sys
import time
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVER = os.environ.get("KUBERNETES_HOST", "kubernetes.default.svc")
TOKEN = Path(os.environ.get("TOKEN_FILE", ACCOUNT / "token"))
AUTHORITY = os.environ.get("CA_FILE", str(ACCOUNT / "ca.crt"))
PATIENCE = float(os.environ.get("PATIENCE_SECONDS", "60"))
"""Seconds; kube-apiserver looks at a new server within half of it."""
MOST = 4 * 1024 * 1024
"""Bytes of an answer that are read."""


def get(path: str) -> Any:
    """Return the answer to a request of the test's own account."""
    trust = ssl.create_default_context(cafile=AUTHORITY)
    connection = http.client.HTTPSConnection(SERVER, timeout=10, context=trust)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN.read_text().strip()}"})
        answer = connection.getresponse()
        body = answer.read(MOST)
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise ValueError(f"{path}: {answer.status} {body[:500].decode(errors='replace')}")
    return json.loads(body)


def unavailable() -> str:
    """Return why kube-apiserver does not hand requests on, or nothing when it does."""
    found = get("/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.porch.kpt.dev")
    said = [one for one in found.get("status", {}).get("conditions", ()) if one["type"] == "Available"]
    if said and said[0]["status"] == "True":
        return ""
    return f"{said[0]['reason']}: {said[0]['message']}" if said else "kube-apiserver has not looked at it yet"


def main() -> int:
    """Look until everything is as it should be, or patience ends; return the exit code."""
    ends = time.monotonic() + PATIENCE
    while why := unavailable():
        if time.monotonic() > ends:
            print(f"porch.kpt.dev is not available: {why}")
            return 1
        time.sleep(1)
    served = {one["name"] for one in get("/apis/porch.kpt.dev/v1alpha1")["resources"]}
    if missing := {"packagerevisions", "packagerevisionresources", "packagerevisions/approval"} - served:
        print(f"porch.kpt.dev does not serve {', '.join(sorted(missing))}: another server is registered")
        return 1
    get("/apis/porch.kpt.dev/v1alpha1/packagerevisions?limit=1")
    get("/apis/config.porch.kpt.dev/v1alpha1/repositories?limit=1")
    print("porch.kpt.dev is available, and lists package revisions and repositories")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        print(f"kube-apiserver was asked and did not answer as it should: {error}")
        sys.exit(1)
