"""The kubeconfig file that the server writes for its administrator, with all credentials inside."""

import base64
from typing import Any

import yaml

NAME = "porch"
"""Name of the cluster and the context; a person types it after ``kubectl --context``."""
USER = "porch-admin"


def kubeconfig_for(*, server: str, ca: bytes, certificate: bytes, key: bytes) -> bytes:
    """Compose a kubeconfig with one cluster, one user and one context, which is current."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": server, "certificate-authority-data": _data(ca)}}],
        "users": [
            {"name": USER, "user": {"client-certificate-data": _data(certificate), "client-key-data": _data(key)}}
        ],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": USER, "namespace": "default"}}],
        "current-context": NAME,
        "preferences": {},
    }
    return yaml.safe_dump(config, sort_keys=False).encode()


def same_access(existing: bytes, wanted: bytes) -> bool:
    """Tell whether ``existing`` reaches the same server with the same credentials as ``wanted``."""
    return _access(existing) == _access(wanted) is not None


def _access(content: bytes) -> tuple[Any, Any] | None:
    try:
        config = yaml.safe_load(content)
        clusters = {entry["name"]: entry["cluster"] for entry in config["clusters"]}
        users = {entry["name"]: entry["user"] for entry in config["users"]}
        return clusters[NAME], users[USER]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
        return None


def _data(pem: bytes) -> str:
    return base64.b64encode(pem).decode("ascii")
