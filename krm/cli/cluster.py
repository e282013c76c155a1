"""Which server a command speaks to, and in which namespace: as kubectl would."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from krm.cli.failures import CommandFailed
from krm.client.client import KubeClient, NoAnswer, connect
from krm.client.kubeconfig import BadKubeconfig
from krm.meta.errors import StatusError
from krm.package.yaml_reader import YamlError, read_document

_VARIABLE = "KUBECONFIG"
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
"""Set in every pod."""
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_NAMESPACE = "default"


@asynccontextmanager
async def cluster(kubeconfig: Path | None, namespace: str) -> AsyncIterator[tuple[KubeClient, str]]:
    """Connect to the server of a kubeconfig; yields a client and the namespace to work in.

    Args:
        kubeconfig: The file; None: the one that ``KUBECONFIG`` names, else ``~/.kube/config``, else the cluster that
            this pod runs in.
        namespace: Empty: that of the kubeconfig's context, else ``default``.

    Raises:
        CommandFailed: no configuration can be used, or the server refused or did not answer.
    """
    try:
        file = kubeconfig or usual_kubeconfig()
        chosen = namespace or namespace_of(file)
        async with connect(file, agent="porch-cli") as client:
            yield client, chosen
    except StatusError as error:
        raise CommandFailed(error.message) from error
    except (NoAnswer, BadKubeconfig) as error:
        raise CommandFailed(str(error)) from error


def usual_kubeconfig() -> Path | None:
    """Return the kubeconfig that kubectl would use, None for the cluster that this pod runs in.

    Raises:
        CommandFailed: there is none.
    """
    named = [Path(part) for part in os.environ.get(_VARIABLE, "").split(os.pathsep) if part]
    candidates = named or [Path.home() / ".kube" / "config"]
    for file in candidates:
        if file.is_file():
            return file
    if named or _IN_CLUSTER not in os.environ:
        listed = ", ".join(map(str, candidates))
        raise CommandFailed(f"there is no kubeconfig: none of {listed}; name one with --kubeconfig or {_VARIABLE}")
    return None


def namespace_of(kubeconfig: Path | None) -> str:
    """Return the namespace of the current context, or of this pod.

    Raises:
        CommandFailed: the file cannot be read.
    """
    try:
        if kubeconfig is None:
            return _POD_NAMESPACE.read_text().strip() or _DEFAULT_NAMESPACE
        config = read_document(kubeconfig.read_bytes(), strict=False)
    except (OSError, YamlError) as error:
        raise CommandFailed(f"cannot read {kubeconfig or _POD_NAMESPACE}: {error}") from error
    config = config if isinstance(config, dict) else {}
    contexts = config.get("contexts")
    for entry in contexts if isinstance(contexts, list) else ():
        if isinstance(entry, dict) and entry.get("name") == config.get("current-context"):
            return str(_mapping(entry.get("context")).get("namespace") or _DEFAULT_NAMESPACE)
    return _DEFAULT_NAMESPACE


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
