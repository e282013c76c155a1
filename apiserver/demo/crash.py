"""The last chapter: ``kill -9`` in the middle of a save and of an approval.

What was acknowledged must be there after the restart; what was not must be there whole or not at all.
"""

import json
import random
import time
from collections.abc import Callable

from apiserver.demo.narration import Narrator
from apiserver.demo.surroundings import Server

ROUNDS = 2
LATEST = 0.25
"""Seconds after which the kill comes at the latest; kubectl itself takes about 0.1 s to send its request."""
PATIENCE = 90.0
Refs = Callable[[], dict[str, str]]

REVISION = """\
apiVersion: porch.kpt.dev/v1alpha1
kind: PackageRevision
metadata:
  name: deployments.crash-{number}.v1
spec:
  repository: deployments
  packageName: crash-{number}
  workspaceName: v1
  tasks:
  - type: init
    init:
      description: a package for a crash
"""
NOTE = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: note\ndata:\n  saved: "yes"\n'


def tell_crash(narrator: Narrator, server: Server, refs: Refs) -> None:
    """Kill and restart the server a few times, and check what is left each time."""
    narrator.chapter("kill -9")
    if not server.is_ours:
        narrator.say(
            "Left out: the server is not the demo's own, so it is not killed. `make demo` with no server running does."
        )
        return
    for number in range(1, ROUNDS + 1):
        name = f"deployments.crash-{number}.v1"
        narrator.write(f"crash-{number}.yaml", REVISION.format(number=number))
        narrator.show("kubectl", "create", "-f", f"crash-{number}.yaml")
        _save(narrator, server, name)
        narrator.show(
            "kubectl", "patch", "packagerevision", name, "--type=merge", "-p", '{"spec":{"lifecycle":"Proposed"}}'
        )
        _approve(narrator, server, name, f"refs/tags/crash-{number}/v1", refs)


def _save(narrator: Narrator, server: Server, name: str) -> None:
    """Kill the server while a file is added to the draft."""
    before = json.loads(narrator.run("kubectl", "get", "packagerevisionresources", name, "-o", "json").stdout)
    after = json.loads(json.dumps(before))
    after["spec"]["resources"]["note.yaml"] = NOTE
    (narrator.folder / "save.json").write_text(json.dumps(after))
    acknowledged = _kill_during(narrator, server, "kubectl", "replace", "-f", "save.json")
    left = json.loads(narrator.run("kubectl", "get", "packagerevisionresources", name, "-o", "json").stdout)
    files, untouched = left["spec"]["resources"], before["spec"]["resources"]
    saved = "note.yaml" in files
    narrator.expect(
        saved or not acknowledged, f"{_heard(acknowledged)}; the file is {'there' if saved else 'not there'}"
    )
    whole = set(files) - {"note.yaml"} == set(untouched) and files.get("note.yaml", NOTE) == NOTE
    narrator.expect(whole, "the draft is whole")


def _approve(narrator: Narrator, server: Server, name: str, tag: str, refs: Refs) -> None:
    """Kill the server while the revision is approved."""
    patch = ["--subresource=approval", "--type=merge", "-p", '{"spec":{"lifecycle":"Published"}}']
    acknowledged = _kill_during(narrator, server, "kubectl", "patch", "packagerevision", name, *patch)
    path = "jsonpath={.spec.lifecycle}"
    deadline = time.monotonic() + PATIENCE
    while True:
        lifecycle = narrator.run("kubectl", "get", "packagerevision", name, "-o", path).stdout
        tagged = tag in refs()
        # A push that nobody heard of any more becomes visible with the first sync after the start.
        if tagged == (lifecycle == "Published") or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    narrator.expect(tagged == (lifecycle == "Published"), f"the revision is {lifecycle}, and Git agrees")
    narrator.expect(lifecycle == "Published" or not acknowledged, _heard(acknowledged))


def _kill_during(narrator: Narrator, server: Server, *command: str) -> bool:
    """Start a command, kill the server a moment later and start it again; tell whether the command was answered."""
    process = narrator.start(*command)
    delay = random.uniform(0.0, LATEST)  # noqa: S311  (no secret hangs on it)
    time.sleep(delay)
    narrator.say(f"kill -9 after {delay * 1000:.0f} ms")
    server.kill()
    process.communicate(timeout=60)
    server.start()
    narrator.show("kubectl", "wait", "--for=condition=Ready", "--timeout=60s", "repository/deployments")
    return process.returncode == 0


def _heard(acknowledged: bool) -> str:
    return "kubectl had its answer" if acknowledged else "kubectl had no answer"
