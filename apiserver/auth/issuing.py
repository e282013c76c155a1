"""Kubeconfigs for further users of a standalone server: ``porch issue``.

Source: ``kube-api.md`` 3.6 (b).
"""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import yaml

from apiserver.auth.certificates import LEAF_LIFE, Files, UnusableCertificate, issue_client, load_authority
from apiserver.auth.kubeconfig import NAME, kubeconfig_for

MAX_NAME = 64
"""Characters of a user's or group's name; X.509 allows no more."""


class NotIssued(Exception):
    """No kubeconfig was made, for a reason that the message names."""


def user_kubeconfig(data: Path, name: str, groups: Sequence[str], life: dt.timedelta = LEAF_LIFE) -> bytes:
    """Return a kubeconfig for user ``name`` in ``groups`` of the server that keeps its files in ``data``.

    It holds a client certificate made for it, good for ``life``; the certificate cannot be taken back before that.
    Repeating this makes another one.

    Raises:
        NotIssued: no server was started there yet, or a name cannot stand in a certificate.
    """
    for text in (name, *groups):
        if not 0 < len(text) <= MAX_NAME:
            raise NotIssued(f"the name {text[:MAX_NAME]!r} must have 1 to {MAX_NAME} characters")
    files = Files.under(data)
    try:
        authority = load_authority(files)
        server = _server(files.kubeconfig)
    except (UnusableCertificate, OSError, ValueError) as error:
        raise NotIssued(f"{data} is not the data directory of a server that was started: {error}") from error
    certificate, key = issue_client(authority, name, groups, life)
    return kubeconfig_for(server=server, ca=files.ca.read_bytes(), certificate=certificate, key=key, user=name)


def _server(kubeconfig: Path) -> str:
    try:
        clusters = {entry["name"]: entry["cluster"] for entry in yaml.safe_load(kubeconfig.read_bytes())["clusters"]}
        return str(clusters[NAME]["server"])
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise ValueError(f"{kubeconfig} does not name the server") from error
