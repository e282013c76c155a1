"""The story: two blueprints repositories, one deployment repository, and a package that goes all the way.

Chapters in order; each ends with checks, and the first thing that is not as told ends the demo with exit code 1.
"""

import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from apiserver.demo.crash import tell_crash
from apiserver.demo.narration import Narrator, SecondWindow, StoryBroken
from apiserver.demo.remotes import PASSWORD, USER, GitHttp, make_remotes, read_refs
from apiserver.demo.surroundings import CannotPlay, Server, choose_server, find_kubectl, find_packages

EXIT_BROKEN, EXIT_CANNOT = 1, 2
PATIENCE = 60.0
"""Seconds that something which happens in the background may take."""
DISCOVERED = 146
"""Revisions in the remotes: 10 and 65 tags, and for each of the 6 and 65 packages the one that follows main."""
FIRST, SECOND = "deployments.assets.v1", "deployments.assets.v2"
PROPOSED, DRAFT = '{"spec":{"lifecycle":"Proposed"}}', '{"spec":{"lifecycle":"Draft"}}'
PUBLISHED, DELETION = '{"spec":{"lifecycle":"Published"}}', '{"spec":{"lifecycle":"DeletionProposed"}}'

REPOSITORY = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata:
  name: {name}
spec:
  type: git
  deployment: {deployment}
  git:
    repo: {url}
    branch: main
    secretRef:
      name: git-auth
"""
REVISION = """\
apiVersion: porch.kpt.dev/v1alpha1
kind: PackageRevision
metadata:
  name: {name}
spec:
  repository: deployments
  packageName: {package}
  workspaceName: {workspace}
  tasks:
"""
CLONE = REVISION.format(name=FIRST, package="assets", workspace="v1") + (
    "  - type: clone\n    clone:\n      upstreamRef:\n        upstreamRef:\n          name: blueprints.bucket.v1\n"
)
EDIT = REVISION.format(name=SECOND, package="assets", workspace="v2") + (
    f"  - type: edit\n    edit:\n      sourceRef:\n        name: {FIRST}\n"
)


def run(data: Path | None = None, port: int | None = None) -> int:
    """Play the story and return an exit code: 0 as told, 1 something was not, 2 it could not be played.

    ``data`` names the folder of a running server; without one, or when none runs there, KUBECONFIG's server is used if
    it is a Porch on this machine, else a fresh server is started on ``port`` and stopped in the end.
    """
    folder = Path(tempfile.mkdtemp(prefix="porch-demo-"))
    try:
        _play(folder, data, port)
    except CannotPlay as problem:
        print(f"porch demo: {problem}", file=sys.stderr)  # noqa: T201
        return EXIT_CANNOT
    except StoryBroken as problem:
        print(f"\nporch demo: {problem}", file=sys.stderr)  # noqa: T201
        return EXIT_BROKEN
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _play(folder: Path, data: Path | None, port: int | None) -> None:
    kubectl, packages = find_kubectl(), find_packages()
    remotes, work = folder / "remotes", folder / "work"
    remotes.mkdir()
    work.mkdir()
    make_remotes(remotes, packages)
    server = choose_server(kubectl, folder, data, port)
    with GitHttp(remotes) as git:
        try:
            server.start()
            Story(server, git, remotes, work).tell()
        finally:
            server.stop()


class Story:
    """The chapters, and what they share: the narrator, the server, the remotes."""

    def __init__(self, server: Server, git: GitHttp, remotes: Path, work: Path) -> None:
        # A copy, because the namespace is set in it.
        shutil.copyfile(server.kubeconfig, work / "kubeconfig")
        environment = {"KUBECONFIG": str(work / "kubeconfig"), "KUBECACHEDIR": str(work / "cache")}
        self.narrator = Narrator(work, environment)
        self.server = server
        self.git = git
        self.remotes = remotes
        self.namespace = "porch-demo" if server.is_ours else f"porch-demo-{secrets.token_hex(3)}"

    def tell(self) -> None:
        """Tell everything, then clean up."""
        try:
            self.register()
            window = self.second_window()
            try:
                self.clone()
                self.edit()
                self.propose_and_approve()
                self.look_into_git()
                self.second_revision()
                self.delete_first()
                self.look_at(window)
            finally:
                window.close()
            tell_crash(self.narrator, self.server, self.refs)
        finally:
            self.leave()

    def register(self) -> None:
        """Make a namespace and register the repositories."""
        show = self.narrator.show
        self.narrator.chapter("A namespace, credentials, three repositories")
        show("kubectl", "create", "namespace", self.namespace)
        show("kubectl", "config", "set-context", "--current", f"--namespace={self.namespace}")
        auth = [
            "--type=kubernetes.io/basic-auth",
            f"--from-literal=username={USER}",
            f"--from-literal=password={PASSWORD}",
        ]
        show("kubectl", "create", "secret", "generic", "git-auth", *auth)
        names = ("blueprints", "catalog", "deployments")
        manifests = [
            REPOSITORY.format(name=name, url=self.git.url(name), deployment=str(name == "deployments").lower())
            for name in names
        ]
        self.narrator.write("repositories.yaml", "---\n".join(manifests))
        show("kubectl", "apply", "-f", "repositories.yaml")
        show("kubectl", "wait", "--for=condition=Ready", "--timeout=60s", *(f"repository/{name}" for name in names))
        show("kubectl", "get", "repositories")
        self.narrator.say("Every package revision that Git holds is there:")
        listed = show("kubectl", "get", "packagerevisions")
        rows = len(listed.splitlines()) - 1
        self.narrator.expect(rows == DISCOVERED, f"all of them: {rows}")

    def second_window(self) -> SecondWindow:
        """Start a watch that runs along."""
        self.narrator.say("In a second window, to see every step of the deployment repository as it happens:")
        selector = "--field-selector=spec.repository=deployments"
        watch = ("kubectl", "get", "packagerevisions", "-w", "--output-watch-events", selector)
        return SecondWindow(self.narrator.start(*watch))

    def clone(self) -> None:
        """Clone a blueprint into the deployment repository."""
        self.narrator.chapter("Clone a blueprint into the deployment repository")
        self.narrator.write("clone.yaml", CLONE)
        self.narrator.show("kubectl", "create", "-f", "clone.yaml")
        self.narrator.show("kubectl", "get", "packagerevision", FIRST)
        self.narrator.say("Its draft branch is in the remote a moment later:")
        draft = "refs/heads/drafts/assets/v1"
        self.wait_until(lambda: draft in self.refs(), f"the remote has {draft}")

    def edit(self) -> None:
        """Change the package's files and see what its pipeline makes of them."""
        self.narrator.chapter("Change a value; the package's pipeline applies it")
        show = self.narrator.show
        show("kubectl", "get", "packagerevisionresources", FIRST, "-o", "yaml", into="assets.yaml")
        self.narrator.edit("assets.yaml", ("storage-class: nearline", "storage-class: coldline"))
        show("kubectl", "replace", "-f", "assets.yaml")
        path = r"jsonpath={.spec.resources.bucket\.yaml}"
        rendered = show("kubectl", "get", "packagerevisionresources", FIRST, "-o", path, lines=60)
        self.narrator.expect("storageClass: coldline" in rendered, "apply-setters wrote coldline into bucket.yaml")
        again = self.narrator.run("kubectl", "replace", "-f", "assets.yaml")
        self.narrator.expect(again.returncode != 0, f"the copy is stale now: {again.stderr.strip()}")

    def propose_and_approve(self) -> None:
        """Propose, reject, propose, approve."""
        self.narrator.chapter("Propose, reject, propose, approve")
        self.narrator.say("A draft cannot be approved:")
        self.approval(FIRST, PUBLISHED, refused=True)
        self.main(FIRST, PROPOSED)
        self.narrator.say("Rejected, it is a draft again:")
        self.approval(FIRST, DRAFT)
        self.main(FIRST, PROPOSED)
        self.approval(FIRST, PUBLISHED)
        self.narrator.show("kubectl", "get", "packagerevision", FIRST)
        path = "jsonpath={.spec.revision} {.spec.lifecycle} {.status.publishedBy}"
        shown = self.narrator.run("kubectl", "get", "packagerevision", FIRST, "-o", path).stdout
        self.narrator.expect(shown.startswith("1 Published "), f"revision, lifecycle, approver: {shown}")

    def look_into_git(self) -> None:
        """Show that the approval is an ordinary commit and tag."""
        self.narrator.chapter("What the remote has, seen by git itself")
        url = self.git.url("deployments")
        if shutil.which("git"):
            self.narrator.show("git", "clone", "--quiet", url, "deployments")
            self.narrator.show("git", "-C", "deployments", "log", "--graph", "--format=%h %an: %s %d", "--all")
            self.narrator.show("git", "-C", "deployments", "ls-files")
        self.narrator.show(*_ls_remote(url))
        refs = self.refs()
        self.narrator.expect("refs/tags/assets/v1" in refs, "the tag assets/v1 is there")
        self.narrator.expect(
            not any("/drafts/" in ref or "/proposed/" in ref for ref in refs), "no draft branch is left"
        )

    def second_revision(self) -> None:
        """Make revision 2 with the task edit."""
        self.narrator.chapter("A second revision")
        self.narrator.write("edit.yaml", EDIT)
        show = self.narrator.show
        show("kubectl", "create", "-f", "edit.yaml")
        show("kubectl", "get", "packagerevisionresources", SECOND, "-o", "yaml", into="assets.yaml")
        self.narrator.edit("assets.yaml", ("enabled: false", "enabled: true"))
        show("kubectl", "replace", "-f", "assets.yaml")
        self.main(SECOND, PROPOSED)
        self.approval(SECOND, PUBLISHED)
        show("kubectl", "get", "packagerevisions", "--field-selector=spec.packageName=assets")
        latest = self.revision(SECOND)["metadata"].get("labels", {}).get("kpt.dev/latest-revision")
        self.narrator.expect(latest == "true", "the second revision is the latest now")

    def delete_first(self) -> None:
        """Take the first revision away, which needs a proposal too."""
        self.narrator.chapter("Delete the first revision")
        self.narrator.say("A published revision is not deleted just like that:")
        self.narrator.show("kubectl", "delete", "packagerevision", FIRST, refused=True)
        self.main(FIRST, DELETION)
        self.narrator.show("kubectl", "delete", "packagerevision", FIRST)
        self.narrator.show("kubectl", "get", "packagerevisions", "--field-selector=spec.packageName=assets")
        self.narrator.expect("refs/tags/assets/v1" not in self.refs(), "its tag is gone from the remote")

    def look_at(self, window: SecondWindow) -> None:
        """Show what the watch saw."""
        self.narrator.chapter("Meanwhile, in the second window")
        deadline = time.monotonic() + PATIENCE
        while not any("DELETED" in line and FIRST in line for line in window.lines) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.narrator.print_lines(window.lines)
        steps = [_step(line) for line in window.lines if FIRST in line.split()]
        told = ["Draft", "Proposed", "Draft", "Proposed", "Published", "DeletionProposed", "DELETED"]
        seen = [step for index, step in enumerate(steps) if index == 0 or steps[index - 1] != step]
        self.narrator.expect(seen == told, f"it saw {FIRST} go through {', '.join(told)}, in this order")

    def leave(self) -> None:
        """Delete the namespace: its repositories are unregistered, and Git stays as it is."""
        self.narrator.chapter("Clean up")
        self.wait_until(self.all_pushed, "every draft's branch is in the remote")
        before = self.refs()
        self.narrator.show("kubectl", "delete", "namespace", self.namespace)
        self.narrator.expect(self.refs() == before, "the namespace is gone, and the remote is as it was")

    def main(self, name: str, patch: str) -> None:
        """Patch the revision itself."""
        self.narrator.show("kubectl", "patch", "packagerevision", name, "--type=merge", "-p", patch)

    def approval(self, name: str, patch: str, *, refused: bool = False) -> None:
        """Patch the revision's approval subresource."""
        command = ["kubectl", "patch", "packagerevision", name, "--subresource=approval", "--type=merge", "-p", patch]
        self.narrator.show(*command, refused=refused)

    def revision(self, name: str) -> dict[str, dict[str, dict[str, str]]]:
        """Read a package revision silently."""
        shown = self.narrator.run("kubectl", "get", "packagerevision", name, "-o", "json")
        found: dict[str, dict[str, dict[str, str]]] = json.loads(shown.stdout)
        return found

    def all_pushed(self) -> bool:
        """Tell whether the remote has every draft and proposal; a save is answered up to a second before."""
        shown = self.narrator.run("kubectl", "get", "packagerevisions", "-o", "json")
        refs = self.refs()
        open_ones = [
            one for one in json.loads(shown.stdout)["items"] if one["spec"]["lifecycle"] in ("Draft", "Proposed")
        ]
        locks = [one["status"]["selfLock"]["git"] for one in open_ones]
        return all(refs.get(f"refs/heads/{lock['ref']}") == lock["commit"] for lock in locks)

    def refs(self) -> dict[str, str]:
        """Return the deployment repository's branches and tags, read from its files."""
        return read_refs(self.remotes, "deployments")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something that happens in the background."""
        deadline = time.monotonic() + PATIENCE
        while not holds() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.narrator.expect(holds(), what)


def _ls_remote(url: str) -> list[str]:
    if shutil.which("git"):
        return ["git", "ls-remote", url]
    return [
        os.path.relpath(sys.executable) if os.sep not in sys.executable else sys.executable,
        "-m",
        "dulwich",
        "ls-remote",
        url,
    ]


def _step(line: str) -> str:
    """Name what one line of the watch shows: the lifecycle, or that the revision is gone."""
    if line.startswith("DELETED"):
        return "DELETED"
    return next(word for word in line.split() if word in {"Draft", "Proposed", "Published", "DeletionProposed"})
