"""Moves package revisions through their lifecycles with kubectl, each step by the door that a person would take."""

import json

from kubectl import Kubectl

APPROVALS = {("Proposed", "Published"), ("Proposed", "Draft")}
"""Steps that are those of an approver: (from, to)."""


def move(kubectl: Kubectl, name: str, *lifecycles: str) -> None:
    """Take a revision through ``lifecycles``, one after the other."""
    for wanted in lifecycles:
        now = kubectl.ok("get", "packagerevision", name, "-o", "jsonpath={.spec.lifecycle}")
        door = ["--subresource=approval"] if (now, wanted) in APPROVALS else []
        patch = json.dumps({"spec": {"lifecycle": wanted}})
        kubectl.ok("patch", "packagerevision", name, "--type=merge", "-p", patch, *door)
