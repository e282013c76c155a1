"""A namespace in which package variants live: a server process, Git remotes with blueprints, and what people do there.

Everything here is what users and the cluster do; the controller under test is in ``variant_fixture.py``.
"""

import json
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import remotes
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from manifests import credentials, namespace_object, repository
from porch_client import CONFIG, Answer, PorchClient
from porch_process import PorchProcess
from remotes import Remote

Json = dict[str, Any]
UPSTREAM, DOWNSTREAM = "blueprints", "deployments"
"""The two repositories that every place has."""
GATE = "PVOperationsComplete"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  size: small\n  colour: red\n"
SET_LABELS = {"image": "gcr.io/kpt-fn/set-labels:v0.1.5", "configMap": {"app": "foo"}}
SET_NAMESPACE = {"image": "gcr.io/kpt-fn/set-namespace:v0.4.1", "configMap": {"namespace": "my-ns"}}
NO_FUNCTION = {"image": "example.com/no-such-function:v1"}
"""A function whose image nobody has: a render with it fails."""


def kptfile(name: str, more: str = "") -> str:
    """Write a Kptfile."""
    return (
        f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\ninfo:\n  description: a blueprint\n{more}"
    )


def blueprint(name: str = "foo", **files: str) -> dict[str, str]:
    """Return the files of a blueprint; further ones by name, ``_`` for a dot."""
    given = {path.replace("_", "."): text for path, text in files.items()}
    return {"Kptfile": kptfile(name), "settings.yaml": CONFIG_MAP, **given}


def variant(name: str = "my-pv", **spec: Any) -> Json:
    """Build a PackageVariant of ``blueprints/foo`` revision 1 as ``deployments/bar``; parts of the spec by name."""
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": name},
        "spec": {"upstream": upstream(revision=1), "downstream": downstream(), **spec},
    }


def upstream(package: str = "foo", **selector: Any) -> Json:
    """Build ``spec.upstream``."""
    return {"repo": UPSTREAM, "package": package, **selector}


def downstream(package: str = "bar") -> Json:
    """Build ``spec.downstream``."""
    return {"repo": DOWNSTREAM, "package": package}


@dataclass
class Place:
    """One namespace and its two remotes."""

    server: PorchProcess
    git: GitServer
    porch: PorchClient
    remotes: dict[str, Remote] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self.porch.namespace

    # --- repositories ----------------------------------------------------------------------------

    def register(self, name: str, *packages: Mapping[str, Mapping[str, str]], deployment: bool = False) -> None:
        """Make a remote and register it; each of ``packages`` is a commit, from ``<package>[@<tag>]`` to files."""
        remote = Remote(
            remotes.empty_remote(self.git.root / f"{self.namespace}-{name}.git"),
            f"{self.git.url}/{self.namespace}-{name}.git",
        )
        self.remotes[name] = remote
        for commit in packages:
            self.push(name, commit)
        path = f"{CONFIG}/namespaces/{self.namespace}/repositories"
        accepted(self.porch.request("POST", path, repository(name, remote.url, deployment=deployment)))
        eventually(lambda: self._repository_is_ready(name), timeout=60)

    def push(self, repo: str, packages: Mapping[str, Mapping[str, str]]) -> None:
        """Commit packages on the remote's main branch as somebody else would, each with its tag if it has one."""
        remote = self.remotes[repo].path
        for key, files in packages.items():
            package, _, tag = key.partition("@")
            paths = {f"{package}/{path}": text for path, text in files.items()}
            remotes.commit_files(remote, paths, key, tag=f"{package}/{tag}" if tag else "")

    def sync(self, repo: str) -> None:
        """Have the server look at the remote now, and wait until it has."""
        path = f"{CONFIG}/namespaces/{self.namespace}/repositories/{repo}"
        patch = {"metadata": {"annotations": {"porch.kpt.dev/sync": "now"}}}
        accepted(self.porch.request("PATCH", path, patch, content_type="application/merge-patch+json"))

        def done() -> None:
            annotations = self.porch.request("GET", path).object["metadata"].get("annotations") or {}
            assert "porch.kpt.dev/sync" not in annotations

        eventually(done, timeout=60)

    def _repository_is_ready(self, name: str) -> None:
        path = f"{CONFIG}/namespaces/{self.namespace}/repositories/{name}"
        status = self.porch.request("GET", path).object.get("status") or {}
        assert [c["status"] for c in status.get("conditions") or []] == ["True"], status

    # --- package revisions -----------------------------------------------------------------------

    def revision(self, name: str) -> Json:
        """GET a package revision."""
        found: Json = accepted(self.porch.revision(name))
        return found

    def exists(self, name: str) -> bool:
        """Tell whether there is such a package revision."""
        return self.porch.revision(name).code == 200

    def files(self, name: str) -> dict[str, str]:
        """Return the files of a package revision."""
        found: dict[str, str] = accepted(self.porch.resources(name))["spec"]["resources"]
        return found

    def revisions_of(self, package: str, repo: str = DOWNSTREAM) -> dict[str, str]:
        """Return the lifecycle of each revision of a package but the placeholder, by workspace."""
        listed = self.porch.revisions(f"spec.packageName={package},spec.repository={repo}")
        specs = [item["spec"] for item in listed if item["spec"]["workspaceName"] != "main"]
        return {spec["workspaceName"]: spec["lifecycle"] for spec in specs}

    def edit(self, name: str, change: Callable[[Json], object]) -> Json:
        """GET a package revision, change it, PUT it."""
        body = self.revision(name)
        change(body)
        done: Json = accepted(self.porch.request("PUT", self.porch.path("packagerevisions", name), body))
        return done

    def save(self, name: str, **files: str | None) -> None:
        """Change files of a draft; ``_`` stands for a dot in their names."""
        accepted(self.porch.save(name, {path.replace("_", "."): text for path, text in files.items()}))

    def approve(self, name: str) -> Json:
        """Propose and approve a draft."""
        accepted(self.porch.propose(name))
        done: Json = accepted(self.porch.approve(name))
        return done

    def approve_open(self, name: str) -> Json:
        """Propose and approve a draft whose own gate is not open, by opening it as its author."""

        def open_gate(body: Json) -> None:
            conditions = body["status"].get("conditions") or []
            opened = {"type": GATE, "status": "True", "reason": "ByHand"}
            body["status"]["conditions"] = [one for one in conditions if one["type"] != GATE] + [opened]

        self.edit(name, open_gate)
        return self.approve(name)

    def draft_of(self, source: str, workspace: str, **more: Any) -> str:
        """Make the next draft of a published revision, as a user would; return its name."""
        spec = self.revision(source)["spec"]
        task = {"type": "edit", "edit": {"sourceRef": {"name": source}}}
        made = self.porch.create_revision(spec["repository"], spec["packageName"], workspace, tasks=[task], **more)
        return str(accepted(made)["metadata"]["name"])

    def new_draft(self, package: str, workspace: str = "ws-1", repo: str = DOWNSTREAM) -> str:
        """Make a package by hand; return the name of its draft."""
        return str(accepted(self.porch.create_revision(repo, package, workspace))["metadata"]["name"])

    def new_upstream(self, number: int, package: str = "foo", **files: str) -> str:
        """Publish the next revision of a blueprint; return its name."""
        source = f"{UPSTREAM}.{package}.v{number - 1}"
        name = self.draft_of(source, f"v{number}")
        self.save(name, **(files or {"settings_yaml": CONFIG_MAP.replace("small", f"size-{number}")}))
        self.approve(name)
        return name

    def own(self, name: str, *owners: Json) -> None:
        """Give a revision further owners."""
        self.edit(name, lambda body: body["metadata"].setdefault("ownerReferences", []).extend(owners))

    def stranger(self) -> Json:
        """Make an object that is no variant; return an owner reference to it."""
        made = self.create("/api/v1", "configmaps", {"metadata": {"name": "stranger"}})
        uid = made["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": "stranger", "uid": uid}

    # --- other objects ---------------------------------------------------------------------------

    def path(self, root: str, plural: str, name: str = "", namespace: str = "") -> str:
        """Return the path of a namespaced resource."""
        return "/".join(part for part in (root, "namespaces", namespace or self.namespace, plural, name) if part)

    def create(self, root: str, plural: str, body: Json, namespace: str = "") -> Json:
        """POST an object."""
        made: Json = accepted(self.porch.request("POST", self.path(root, plural, "", namespace), body))
        return made

    def patch(self, root: str, plural: str, name: str, patch: Json) -> Json:
        """Merge a patch into an object."""
        content_type = "application/merge-patch+json"
        path = self.path(root, plural, name)
        done: Json = accepted(self.porch.request("PATCH", path, patch, content_type=content_type))
        return done

    def delete(self, root: str, plural: str, name: str, **query: str) -> Answer:
        """DELETE an object."""
        parameters = f"?{urllib.parse.urlencode(query)}" if query else ""
        return self.porch.request("DELETE", self.path(root, plural, name) + parameters)

    # --- variants --------------------------------------------------------------------------------

    def add_variant(self, body: Json) -> Json:
        """Create a variant."""
        return self.create(CONFIG, "packagevariants", body)

    def variant(self, name: str = "my-pv") -> Json:
        """GET a variant."""
        found: Json = accepted(self.porch.request("GET", self.path(CONFIG, "packagevariants", name)))
        return found

    def has_variant(self, name: str = "my-pv") -> bool:
        """Tell whether there is such a variant."""
        return self.porch.request("GET", self.path(CONFIG, "packagevariants", name)).code == 200

    def change_variant(self, name: str = "my-pv", **spec: Any) -> Json:
        """Replace parts of a variant's spec as a whole; None takes one out."""

        def apply() -> Json:
            body = self.variant(name)
            body["spec"] = {key: part for key, part in {**body["spec"], **spec}.items() if part is not None}
            answer = self.porch.request("PUT", self.path(CONFIG, "packagevariants", name), body)
            done: Json = accepted(answer)
            return done

        return eventually(apply)

    def patch_variant(self, patch: Json, name: str = "my-pv") -> None:
        """Merge a patch into a variant, such as one of its metadata."""
        self.patch(CONFIG, "packagevariants", name, patch)

    def condition(self, kind: str, name: str = "my-pv") -> tuple[str, str, str]:
        """Return status, reason and message of a variant's condition."""
        conditions = (self.variant(name).get("status") or {}).get("conditions") or []
        return next((_told(one) for one in conditions if one["type"] == kind), ("", "", ""))

    def targets(self, name: str = "my-pv") -> list[str]:
        """Return the names of a variant's downstream targets."""
        status = self.variant(name).get("status") or {}
        return [target["name"] for target in status.get("downstreamTargets") or []]

    # --- Git -------------------------------------------------------------------------------------

    def pushed(self, package: str, workspace: str, repo: str = DOWNSTREAM) -> dict[str, str]:
        """Wait until the branch of a draft has what the API shows; return its files."""
        name = f"{repo}.{package.replace('/', '.')}.{workspace}"
        remote = self.remotes[repo].path

        def same() -> dict[str, str]:
            files = remotes.files_at(remote, self.draft_commit(package, workspace, repo), package)
            assert files == self.files(name)
            return files

        return eventually(same)

    def draft_commit(self, package: str, workspace: str, repo: str = DOWNSTREAM) -> str:
        """Return the commit of a draft's branch in the remote."""
        found = remotes.refs(self.remotes[repo].path)
        assert f"refs/heads/drafts/{package}/{workspace}" in found, sorted(found)
        return found[f"refs/heads/drafts/{package}/{workspace}"]

    def refs(self, repo: str = DOWNSTREAM) -> set[str]:
        """Return the names of the remote's branches and tags."""
        return set(remotes.refs(self.remotes[repo].path))


def _told(condition: Json) -> tuple[str, str, str]:
    return condition["status"], condition["reason"], condition["message"]


def condition_of(revision: Json, kind: str) -> Json:
    """Return a condition of a package revision; empty where there is none."""
    conditions = (revision.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one["type"] == kind), {})


def gates_of(revision: Json) -> list[str]:
    """Return the types of a package revision's readiness gates."""
    return [gate["conditionType"] for gate in revision["spec"].get("readinessGates") or []]


def owners_of(revision: Json) -> list[str]:
    """Return the UIDs of a package revision's owners."""
    return [owner["uid"] for owner in revision["metadata"].get("ownerReferences") or []]


def new_place(server: PorchProcess, git: GitServer, namespace: str) -> Place:
    """Return a place in a new namespace, without repositories."""
    porch = server.client(namespace)
    porch.request("POST", "/api/v1/namespaces", namespace_object(namespace))
    porch.request("POST", f"/api/v1/namespaces/{namespace}/secrets", credentials())
    return Place(server, git, porch)


def with_blueprint(place: Place, files: Mapping[str, str] | None = None, *, deployment: bool = True) -> Place:
    """Register the two repositories, the first with revision 1 of the blueprint ``foo``."""
    place.register(UPSTREAM, {"foo@v1": files or blueprint()})
    place.register(DOWNSTREAM, deployment=deployment)
    return place


def kubeconfig_for(server: PorchProcess, port: int, path: Path) -> Path:
    """Write the server's kubeconfig with another port, as for a proxy in front of it."""
    text = server.kubeconfig.read_text().replace(f":{server.port}", f":{port}")
    path.write_text(text)
    return path


def canonical(value: Any) -> str:
    """Return the JSON of a value with sorted keys, to compare and to count with."""
    return json.dumps(value, sort_keys=True)
