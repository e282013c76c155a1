"""Package revisions for tests of what must not happen to them: make one, photograph it, compare.

A snapshot is the object, its files and every ref of its remote: whatever is refused must leave all three alone.
"""

from dataclasses import dataclass
from typing import Any

from eventually import eventually
from porch_client import Answer, PorchClient
from remotes import Remote, files_at, refs

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  key: value\n"


@dataclass(frozen=True)
class Snapshot:
    """Everything about a revision that a refused request must leave as it was."""

    revision: Any
    files: Any
    refs: dict[str, str]


@dataclass(frozen=True)
class Revision:
    """A package revision in a deployment repository, and the remote below it."""

    porch: PorchClient
    remote: Remote
    name: str
    package: str
    workspace: str = "v1"

    @property
    def draft_ref(self) -> str:
        """The branch of the draft."""
        return f"refs/heads/drafts/{self.package}/{self.workspace}"

    @property
    def proposed_ref(self) -> str:
        """The branch of the proposal."""
        return f"refs/heads/proposed/{self.package}/{self.workspace}"

    @property
    def files(self) -> dict[str, str]:
        """The files as the API shows them."""
        found: dict[str, str] = self.porch.resources(self.name).object["spec"]["resources"]
        return found

    @property
    def lifecycle(self) -> str:
        """The lifecycle as the API shows it."""
        return str(self.porch.revision(self.name).object["spec"]["lifecycle"])

    def wait_until_pushed(self) -> None:
        """Wait until the remote's draft or proposed branch has the files that the API shows."""
        ref = self.proposed_ref if self.lifecycle == "Proposed" else self.draft_ref

        def same() -> None:
            assert ref in refs(self.remote.path)
            assert files_at(self.remote.path, ref, self.package) == self.files

        eventually(same)

    def snapshot(self) -> Snapshot:
        """Photograph the object, its files and its remote, once the remote has caught up with a draft."""
        if self.lifecycle in {"Draft", "Proposed"}:
            self.wait_until_pushed()
        return self.look()

    def look(self) -> Snapshot:
        """Photograph without waiting for anything."""
        return Snapshot(
            self.porch.revision(self.name).object, self.porch.resources(self.name).object, refs(self.remote.path)
        )


def draft(porch: PorchClient, repository: str, remote: Remote, package: str = "app") -> Revision:
    """Make a draft with one file more than ``init`` gives."""
    name = accepted(porch.create_revision(repository, package))["metadata"]["name"]
    accepted(porch.save(name, {"settings.yaml": CONFIG_MAP}))
    return Revision(porch, remote, name, package)


def proposal(porch: PorchClient, repository: str, remote: Remote, package: str = "app") -> Revision:
    """Make a proposed revision."""
    made = draft(porch, repository, remote, package)
    accepted(porch.propose(made.name))
    return made


def published(porch: PorchClient, repository: str, remote: Remote, package: str = "app") -> Revision:
    """Make a published revision."""
    made = proposal(porch, repository, remote, package)
    accepted(porch.approve(made.name))
    return made


def accepted(answer: Answer) -> Any:
    """Return the object of an answer that has to be a success."""
    assert answer.code < 300, answer.body.decode()
    return answer.object


def refused(answer: Answer, code: int, reason: str, *words: str) -> Any:
    """Check an error's code and reason, and that its sentence says each of ``words``; return the Status."""
    assert (answer.code, answer.reason) == (code, reason), answer.body.decode()
    missing = [word for word in words if word not in answer.message]
    assert not missing, f"{answer.message!r} does not say {missing}"
    assert answer.object["kind"] == "Status"
    return answer.object
