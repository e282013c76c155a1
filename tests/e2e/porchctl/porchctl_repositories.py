"""The commands ``porchctl repo``."""

from datetime import UTC, datetime, timedelta

from porch_client import CONFIG, Object
from porchctl_printing import printed
from porchctl_requests import JSON, TABLE, Command, Requests


class Repositories:
    """Registers, shows, syncs and unregisters repositories."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def register(self, command: Command) -> None:
        url = command.names[0]
        name = command.flag("name") or url.rpartition("/")[2]
        git: Object = {
            "repo": url,
            "branch": command.flag("branch", "main"),
            "directory": command.flag("directory", "/"),
        }
        if command.flag("repo-basic-username"):
            login = {key: command.flag(f"repo-basic-{key}") for key in ("username", "password")}
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/basic-auth",
                "metadata": {"name": f"{name}-auth"},
                "stringData": login,
            }
            self._requests.send("POST", self._requests.path(command, "secrets", group="/api/v1"), secret)
            git["secretRef"] = {"name": f"{name}-auth"}
        spec: Object = {"type": "git", "git": git}
        if command.flag("description"):
            spec["description"] = command.flag("description")
        if command.flag("deployment") == "true":
            spec["deployment"] = True
        body = {
            "kind": "Repository",
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "metadata": {"name": name, "namespace": command.flag("namespace")},
            "spec": spec,
        }
        self._requests.send("POST", self._requests.path(command, "repositories", group=CONFIG), body)

    def get(self, command: Command) -> None:
        accept = JSON if command.flag("output") else TABLE
        found = self._requests.send(
            "GET", self._requests.path(command, "repositories", *command.names, group=CONFIG), accept=accept
        )
        command.stdout += printed([found], command.flag("output"), headers="no-headers" not in command.flags)

    def unregister(self, command: Command) -> None:
        path = self._requests.path(command, "repositories", command.names[0], group=CONFIG)
        secret = self._requests.send("GET", path)["spec"]["git"].get("secretRef")
        options = {"kind": "DeleteOptions", "apiVersion": "config.porch.kpt.dev/v1alpha1"}
        self._requests.send("DELETE", path, options)
        if secret:
            self._requests.send("DELETE", self._requests.path(command, "secrets", secret["name"], group="/api/v1"))

    def sync(self, command: Command) -> None:
        """Ask for one full sync of each repository; ``--run-once`` is in seconds (``10s``)."""
        at = datetime.now(UTC) + timedelta(seconds=int(command.flag("run-once", "60s").removesuffix("s")))
        for name in command.names:
            path = self._requests.path(command, "repositories", name, group=CONFIG)
            repository = self._requests.send("GET", path)
            sync = repository["spec"].setdefault("sync", {})
            sync["runOnceAt"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
            self._requests.send("PUT", path, repository)
            command.stdout.append(f'Scheduled one-time sync for "{name}" at {sync["runOnceAt"]}')
