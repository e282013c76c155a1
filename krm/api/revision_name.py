"""Names and UIDs of package revisions: composed, taken apart, checked.

Source: ``porch-api.md`` 2.1 and 2.3; all rules work on full package paths.
"""

import re
import uuid
from dataclasses import dataclass

UID_NAMESPACE = uuid.UUID("aac71d91-5c67-456f-8fd2-902ef6da820e")
MAX_LABEL = 63
MAX_SUBDOMAIN = 253

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SEMVER_WORKSPACE = re.compile(r"\.(v[0-9]+(?:\.[0-9]+)*)$")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@dataclass(frozen=True, slots=True)
class RevisionName:
    """The parts of a package revision's object name."""

    repository: str
    package: str
    """Path relative to the repository's directory, with slashes."""
    workspace: str

    @property
    def object_name(self) -> str:
        """The Kubernetes name: parts joined by dots, slashes of the path as dots."""
        return f"{package_object_name(self.repository, self.package)}.{self.workspace}"


def package_object_name(repository: str, package: str) -> str:
    """Return the Kubernetes name of a package: that of its revisions without the workspace."""
    return f"{repository}.{package.replace('/', '.')}"


def revision_uid(namespace: str, name: str) -> str:
    """Return the deterministic uid; a revision created again has the same one."""
    return _uid("packagerevision", namespace, name)


def package_uid(namespace: str, name: str) -> str:
    """Return the deterministic uid of a package; one that comes again has the same one."""
    return _uid("dbPackage", namespace, name)


def _uid(prefix: str, namespace: str, name: str) -> str:
    return str(uuid.uuid5(UID_NAMESPACE, f"{prefix}:" + f"porch.kpt.dev/v1alpha1/{namespace}/{name}".lower()))


def parse_revision_name(name: str) -> RevisionName | None:
    """Take a name apart; None when it has fewer than three parts.

    The package path is only a guess (dots inside a directory name look like slashes); use it to find the
    repository, never to look an object up.
    """
    if match := _SEMVER_WORKSPACE.search(name):
        workspace, rest = match.group(1), name[: match.start()]
    else:
        rest, _, workspace = name.rpartition(".")
    repository, _, package = rest.partition(".")
    if not repository or not package or not workspace:
        return None
    return RevisionName(repository, package.replace(".", "/"), workspace)


def label_problem(value: str) -> str | None:
    """Say why ``value`` is not an RFC 1123 label, or None."""
    if len(value) > MAX_LABEL:
        return f"must be no more than {MAX_LABEL} characters"
    return None if _LABEL.fullmatch(value) else _LABEL_RULE


def package_path_problem(path: str) -> str | None:
    """Say why ``path`` cannot name a package, or None."""
    if not path:
        return "a package name is required"
    if "//" in path:
        return "consecutive '/' characters are not allowed"
    for segment in path.split("/"):
        if problem := label_problem(segment):
            return f"package path segment {segment[:MAX_LABEL]!r}: {problem}" if "/" in path else problem
    return None


def object_name_problem(name: RevisionName) -> str | None:
    """Say why the composed object name cannot be used, or None; lines as upstream's clients show them."""
    problems = []
    if problem := label_problem(name.repository):
        problems.append(f"repository name {name.repository} invalid: {problem}")
    if problem := package_path_problem(name.package):
        problems.append(f"package name {name.package} invalid: {problem}")
    if problem := label_problem(name.workspace.replace(".", "-")):
        problems.append(f"workspace name {name.workspace} invalid: {problem}")
    if not problems and len(name.object_name) > MAX_SUBDOMAIN:
        problems.append(f"the composed name {name.object_name} is longer than {MAX_SUBDOMAIN} characters")
    if not problems:
        return None
    return "package revision kubernetes resource name invalid:\n" + "\n".join(problems)
