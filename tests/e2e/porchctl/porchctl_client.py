"""porchctl as ``porch-api.md`` 10 describes it: the requests that each command sends, and what it prints.

It stands in for upstream's client, which cannot be had from here; ``test_porchctl_transcripts.py`` replays what the
real one sent.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from porch_client import CONFIG, Object, PorchClient
from porchctl_folders import METADATA, read_input, shown_results, write_folder, write_list
from porchctl_printing import printed
from porchctl_repositories import Repositories
from porchctl_requests import JSON, TABLE, Command, Failed, Requests, parsed
from porchctl_upgrades import downstream_updates, newest_upstream, upstream_of, upstream_updates

RETRIES = 5
"""Attempts of a command whose object somebody else changed in between."""


@dataclass(frozen=True)
class Done:
    """What a command printed and its exit code."""

    stdout: str
    stderr: str
    exit_code: int


ALIASES = {
    "repo register": "repo reg",
    "repo unregister": "repo unreg",
    "rpkg delete": "rpkg del",
    "rpkg edit": "rpkg copy",
}


class Porchctl:
    """The client, speaking to one server."""

    def __init__(self, client: PorchClient) -> None:
        self._requests = Requests(client)
        repositories = Repositories(self._requests)
        self._commands: dict[str, Callable[[Command], None]] = {
            "repo reg": repositories.register,
            "repo get": repositories.get,
            "repo sync": repositories.sync,
            "repo unreg": repositories.unregister,
            "rpkg init": self._init,
            "rpkg clone": self._clone,
            "rpkg copy": self._copy,
            "rpkg get": self._get,
            "rpkg pull": self._pull,
            "rpkg push": self._push,
            "rpkg propose": self._each(self._propose),
            "rpkg approve": self._each(self._approve),
            "rpkg reject": self._each(self._reject),
            "rpkg propose-delete": self._each(self._propose_delete),
            "rpkg del": self._each(self._delete),
            "rpkg upgrade": self._upgrade,
        }

    def run(self, arguments: list[str], stdin: str = "") -> Done:
        """Run one command line without the program's name."""
        verb = " ".join(arguments[:2])
        command = parsed(arguments[2:], stdin)
        try:
            self._commands[ALIASES.get(verb, verb)](command)
        except Failed as failed:
            command.stderr.append(f"Error: {failed} ")
        text = ["".join(f"{line}\n" for line in lines) for lines in (command.stdout, command.stderr)]
        return Done(text[0], text[1], 1 if "Error: " in text[1] else 0)

    # --- requests ----------------------------------------------------------------------------

    def _revision(self, command: Command, name: str) -> Object:
        found: Object = self._requests.send("GET", self._requests.path(command, "packagerevisions", name))
        return found

    def _revisions(self, command: Command, **selectors: str) -> list[Object]:
        fields = ",".join(f"spec.{name}={value}" for name, value in selectors.items())
        query = "?" + urlencode({"fieldSelector": fields}) if fields else ""
        found: list[Object] = self._requests.send("GET", self._requests.path(command, "packagerevisions") + query)[
            "items"
        ]
        return found

    def _create(self, command: Command, package: str, repository: str, task: Object) -> str:
        namespace = command.flag("namespace")
        body = {
            "kind": "PackageRevision",
            "apiVersion": "porch.kpt.dev/v1alpha1",
            "metadata": {"namespace": namespace},
            "spec": {
                "packageName": package,
                "repository": repository,
                "workspaceName": command.flag("workspace", "v1"),
                "tasks": [task],
            },
            "status": {"publishTimestamp": None},
        }
        return str(
            self._requests.send("POST", self._requests.path(command, "packagerevisions"), body)["metadata"]["name"]
        )

    # --- new revisions -----------------------------------------------------------------------

    def _init(self, command: Command) -> None:
        init: Object = {"description": command.flag("description", "sample description")}
        if command.flag("keywords"):
            init["keywords"] = command.flag("keywords").split(",")
        if command.flag("site"):
            init["site"] = command.flag("site")
        task = {"type": "init", "init": init}
        command.stdout.append(f"{self._create(command, command.names[0], command.flag('repository'), task)} created")

    def _clone(self, command: Command) -> None:
        source, package = command.names
        upstream: Object = {"upstreamRef": {"name": source}}
        if "/" in source:
            repo, ref, directory = source, command.flag("ref", "main"), command.flag("directory", "/")
            if ".git/" in source:
                repo, directory = source.split(".git/", 1)
                repo, (directory, _, ref) = f"{repo}.git", f"/{directory}".partition("@")
            git = {"repo": repo, "ref": ref, "directory": directory, "secretRef": {"name": command.flag("secret-ref")}}
            upstream = {"type": "git", "git": git}
        task = {"type": "clone", "clone": {"upstreamRef": upstream}}
        command.stdout.append(f"{self._create(command, package, command.flag('repository'), task)} created")

    def _copy(self, command: Command) -> None:
        source = command.names[0]
        spec = self._revision(command, source)["spec"]
        task = {"type": "edit", "edit": {"sourceRef": {"name": source}}}
        command.stdout.append(f"{self._create(command, spec['packageName'], spec['repository'], task)} created")

    # --- reading and writing files -------------------------------------------------------------

    def _get(self, command: Command) -> None:
        if "show-kptfile" in command.flags:
            self._show_kptfile(command)
            return
        accept = JSON if command.flag("output") else TABLE
        path = self._requests.path(command, "packagerevisions")
        wanted = {key: command.flag(key) for key in ("name", "revision", "workspace") if command.flag(key)}
        selected = {"revision": "revision", "workspace": "workspaceName", "name": "packageName"}
        if command.names:
            found = [self._get_one(f"{path}/{name}", name, accept) for name in command.names]
        else:
            last = [key for key in selected if key in wanted][-1:]
            query = "?" + urlencode({"fieldSelector": f"spec.{selected[last[0]]}={wanted[last[0]]}"}) if last else ""
            found = [self._requests.send("GET", path + query, accept=accept)]
        command.stdout += printed(found, command.flag("output"), wanted=wanted)

    def _get_one(self, path: str, name: str, accept: str) -> Any:
        answer = self._requests.answer("GET", path, accept=accept)
        if answer.code == 404:
            where = f"get packagerevisions.porch.kpt.dev {name}"
            raise Failed(f"the server could not find the requested resource ({where})")
        return answer.object

    def _show_kptfile(self, command: Command) -> None:
        if len(command.names) != 1:
            raise Failed("--show-kptfile requires exactly one package revision name as an argument")
        if any(command.flag(key) for key in ("name", "revision", "workspace")):
            raise Failed("--show-kptfile cannot be combined with --name, --revision, or --workspace")
        if "all-namespaces" in command.flags:
            raise Failed("--show-kptfile cannot be combined with --all-namespaces")
        files = self._requests.send("GET", self._requests.path(command, "packagerevisionresources", command.names[0]))
        command.stdout += files["spec"]["resources"]["Kptfile"].splitlines()

    def _pull(self, command: Command) -> None:
        name, *folder = command.names
        found = self._requests.send("GET", self._requests.path(command, "packagerevisionresources", name))
        if folder:
            write_folder(Path(folder[0]), found)
        else:
            command.stdout += write_list(found)

    def _push(self, command: Command) -> None:
        name, source = command.names
        files, metadata = read_input(source, command.stdin)
        assert METADATA not in files
        version = {"resourceVersion": metadata["resourceVersion"]} if "resourceVersion" in metadata else {}
        body = {
            "kind": "PackageRevisionResources",
            "apiVersion": "porch.kpt.dev/v1alpha1",
            "metadata": {"name": name, "namespace": command.flag("namespace"), **version},
            "spec": {"resources": files},
        }
        answer = self._requests.send("PUT", self._requests.path(command, "packagerevisionresources", name), body)
        command.stderr += shown_results(answer["status"]["renderStatus"])
        command.stdout.append(f"{name} pushed")

    # --- lifecycle ---------------------------------------------------------------------------

    def _each(self, act: Callable[[Command, str], None]) -> Callable[[Command], None]:
        def run(command: Command) -> None:
            errors: list[str] = []
            for name in command.names:
                try:
                    act(command, name)
                except Failed as failed:
                    command.stderr.append(f"{name} failed ({failed})")
                    errors.append(f"  {failed}")
            if errors:
                raise Failed("\n".join(["errors:", *errors]))

        return run

    def _set(self, command: Command, revision: Object, lifecycle: str, *subresource: str) -> None:
        name = revision["metadata"]["name"]
        for attempt in range(RETRIES):
            body = json.loads(json.dumps(revision))
            body["spec"]["lifecycle"] = lifecycle
            answer = self._requests.answer(
                "PUT", self._requests.path(command, "packagerevisions", name, *subresource), body
            )
            if answer.code != 409 or attempt == RETRIES - 1:
                break
            revision = self._revision(command, name)
        if answer.code >= 400:
            raise Failed(answer.message)

    def _propose(self, command: Command, name: str) -> None:
        revision = self._revision(command, name)
        lifecycle = revision["spec"]["lifecycle"]
        _require_ready(revision)
        if lifecycle == "Proposed":
            command.stderr.append(f"{name} is already proposed")
            return
        if lifecycle != "Draft":
            raise Failed(f"cannot propose {lifecycle} package")
        self._set(command, revision, "Proposed")
        command.stdout.append(f"{name} proposed")

    def _approve(self, command: Command, name: str) -> None:
        revision = self._revision(command, name)
        lifecycle = revision["spec"]["lifecycle"]
        _require_ready(revision)
        if lifecycle in {"Proposed", "DeletionProposed"}:
            self._set(command, revision, "Published", "approval")
        elif lifecycle != "Published":
            raise Failed(f"cannot change approval from {lifecycle} to Published")
        command.stdout.append(f"{name} approved")

    def _reject(self, command: Command, name: str) -> None:
        revision = self._revision(command, name)
        lifecycle = revision["spec"]["lifecycle"]
        if lifecycle == "Proposed":
            self._set(command, revision, "Draft", "approval")
            command.stdout.append(f"{name} no longer proposed for approval")
        elif lifecycle == "DeletionProposed":
            self._set(command, revision, "Published")
            command.stdout.append(f"{name} no longer proposed for deletion")
        else:
            raise Failed(f"cannot reject {name} with lifecycle '{lifecycle}'")

    def _propose_delete(self, command: Command, name: str) -> None:
        revision = self._revision(command, name)
        lifecycle = revision["spec"]["lifecycle"]
        if lifecycle == "DeletionProposed":
            command.stderr.append(f"{name} is already proposed for deletion")
            return
        if lifecycle != "Published":
            raise Failed(f"can only propose published packages for deletion; package {name} is not published")
        self._set(command, revision, "DeletionProposed")
        command.stdout.append(f"{name} proposed for deletion")

    def _delete(self, command: Command, name: str) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "porch.kpt.dev/v1alpha1"}
        self._requests.send("DELETE", self._requests.path(command, "packagerevisions", name), options)
        command.stdout.append(f"{name} deleted")

    # --- upgrades ----------------------------------------------------------------------------

    def _upgrade(self, command: Command) -> None:
        if "discover" in command.flags:
            revisions = self._revisions(command)
            repositories = self._requests.send("GET", f"{CONFIG}/repositories")["items"]
            shown = upstream_updates if command.flag("discover") == "upstream" else downstream_updates
            command.stdout += shown(revisions, repositories, command.names)
            return
        name = command.names[0]
        local = self._revision(command, name)
        upstream = upstream_of(local, lambda source: self._revision(command, source))
        old = self._revision(command, upstream)
        found = self._revisions(command, packageName=old["spec"]["packageName"], repository=old["spec"]["repository"])
        task = {
            "type": "upgrade",
            "upgrade": {
                "oldUpstreamRef": {"name": upstream},
                "newUpstreamRef": {"name": newest_upstream(found, command.flag("revision"))},
                "localPackageRevisionRef": {"name": name},
                "strategy": command.flag("strategy", "resource-merge"),
            },
        }
        spec = local["spec"]
        made = self._create(command, spec["packageName"], spec["repository"], task)
        command.stdout.append(f"{name} upgraded to {made}")


def _require_ready(revision: Object) -> None:
    """Refuse what the client refuses: a gate without a condition that is True."""
    true = {it["type"] for it in revision["status"].get("conditions") or [] if it["status"] == "True"}
    if any(gate["conditionType"] not in true for gate in revision["spec"].get("readinessGates") or []):
        raise Failed("readiness conditions not met")
