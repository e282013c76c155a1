"""The kubeconfig file that the server writes for its administrator, with all credentials inside.

The current context uses a client certificate; a second one (``kubectl --context porch-token``) uses a bearer token, for
clients that know no certificates. The server keeps only the token's digest, so this file is the one place of the token.
"""

import base64
from typing import Any

import yaml

NAME = "porch"
"""Name of the cluster and the context; a person types it after ``kubectl --context``."""
USER = "porch-admin"
BEARER = "porch-token"
"""Name of the user and the context that use the token."""


def kubeconfig_for(
    *, server: str, ca: bytes, certificate: bytes, key: bytes, token: str = "", user: str = USER
) -> bytes:
    """Compose a kubeconfig with one cluster and one user, who is current; a ``token`` adds a second user and context."""
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": server, "certificate-authority-data": _data(ca)}}],
        "users": [
            {"name": user, "user": {"client-certificate-data": _data(certificate), "client-key-data": _data(key)}}
        ],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user, "namespace": "default"}}],
        "current-context": NAME,
        "preferences": {},
    }
    if token:
        config["users"].append({"name": BEARER, "user": {"token": token}})
        context = {"cluster": NAME, "user": BEARER, "namespace": "default"}
        config["contexts"].append({"name": BEARER, "context": context})
    return yaml.safe_dump(config, sort_keys=False).encode()


def token_in(content: bytes) -> str:
    """Return the token of a kubeconfig that we wrote, or ""."""
    try:
        token = _users(yaml.safe_load(content))[BEARER]["token"]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
        return ""
    return token if isinstance(token, str) else ""


def same_access(existing: bytes, wanted: bytes) -> bool:
    """Tell whether ``existing`` reaches the same server with the same credentials as ``wanted``."""
    return _access(existing) == _access(wanted) is not None


def _access(content: bytes) -> tuple[Any, Any, Any] | None:
    try:
        config = yaml.safe_load(content)
        clusters = {entry["name"]: entry["cluster"] for entry in config["clusters"]}
        users = _users(config)
        return clusters[NAME], users[USER], users.get(BEARER)
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
        return None


def _users(config: Any) -> dict[str, Any]:
    return {entry["name"]: entry["user"] for entry in config["users"]}


def _data(pem: bytes) -> str:
    return base64.b64encode(pem).decode("ascii")
