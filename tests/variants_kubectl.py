"""PackageVariants with kubectl: write blueprints, wait for what the controller makes of a variant, look at its draft."""

import json
from collections.abc import Mapping
from typing import Any

import yaml
from eventually import eventually
from kubectl import Kubectl
from lifecycles import move
from manifests import edit_task, init_task, package_revision

Object = dict[str, Any]
WAIT = 120.0
"""Seconds until the controller must have done what it was asked for; it takes one or two."""


def publish_blueprint(
    kubectl: Kubectl, repository: str, package: str, workspace: str, files: Mapping[str, str], *, source: str = ""
) -> str:
    """Publish a revision of a package with ``files`` beside its Kptfile, or in place of it; return its name."""
    task = edit_task(source) if source else init_task()
    body = package_revision(repository, package, workspace, task)
    name: str = kubectl.create({**body, "metadata": {"name": "ignored"}})["metadata"]["name"]
    save(kubectl, name, files)
    move(kubectl, name, "Proposed", "Published")
    return name


def save(kubectl: Kubectl, name: str, files: Mapping[str, str]) -> None:
    """Put files into a draft."""
    patch = json.dumps({"spec": {"resources": dict(files)}})
    kubectl.ok("patch", "packagerevisionresources", name, "--type=merge", "-p", patch)


def files_of(kubectl: Kubectl, name: str) -> dict[str, str]:
    """Return a revision's files."""
    found: dict[str, str] = kubectl.json("get", "packagerevisionresources", name)["spec"]["resources"]
    return found


def loaded(kubectl: Kubectl, name: str, path: str) -> Any:
    """Return one of a revision's files, decoded."""
    return yaml.safe_load(files_of(kubectl, name)[path])


def condition(obj: Object, type_: str) -> Object:
    """Return a condition of an object; an empty one where there is none."""
    found = [c for c in (obj.get("status") or {}).get("conditions") or () if c["type"] == type_]
    return found[0] if found else {}


def ready_target(kubectl: Kubectl, variant: str, *, reason: str = "NoErrors", target: str = "") -> str:
    """Wait until a variant's Ready has ``reason`` for its newest generation; return its first target."""

    def look() -> str:
        body = kubectl.json("get", "packagevariant", variant)
        status, ready = body.get("status") or {}, condition(body, "Ready")
        assert ready.get("reason") == reason, status
        assert ready.get("observedGeneration") == body["metadata"]["generation"], status
        names = [each["name"] for each in status.get("downstreamTargets") or ()]
        assert not target or names == [target], status
        return str(names[0]) if names else ""

    return eventually(look, timeout=WAIT)


def gone(kubectl: Kubectl, kind: str, name: str) -> None:
    """Wait until an object is no more."""

    def look() -> None:
        found = kubectl("get", kind, name)
        assert "NotFound" in found.stderr, found.stdout + found.stderr

    eventually(look, timeout=WAIT)
