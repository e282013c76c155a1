"""Objects as they are on the wire, as short as tests of the controller's caches need them."""

from typing import Any

from krm.variants.vocabulary import API_VERSION, FINALIZER, KIND

Json = dict[str, Any]


def variant(name: str = "bar", *, version: str = "1", spec: Json | None = None, **metadata: Any) -> Json:
    """Return a PackageVariant of blueprints/foo in deployments, named like its package."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": version,
            "generation": 1,
            "finalizers": [FINALIZER],
            **metadata,
        },
        "spec": {
            "upstream": {"repo": "blueprints", "package": "foo"},
            "downstream": {"repo": "deployments", "package": name},
            **(spec or {}),
        },
    }


def revision(
    package: str = "foo",
    workspace: str = "v1",
    *,
    repository: str = "blueprints",
    number: int = 0,
    lifecycle: str = "Draft",
    version: str = "1",
    owner: str = "",
    commit: str = "c1",
    status: Json | None = None,
    **metadata: Any,
) -> Json:
    """Return a PackageRevision; ``owner`` is the name of the variant that owns it."""
    owned = [{"apiVersion": API_VERSION, "kind": KIND, "name": owner, "uid": f"uid-{owner}", "controller": True}]
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {
            "namespace": "default",
            "name": f"{repository}.{package}.{workspace}",
            "uid": f"uid-{repository}-{package}-{workspace}",
            "resourceVersion": version,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": owned if owner else [],
            **metadata,
        },
        "spec": {
            "repository": repository,
            "packageName": package,
            "workspaceName": workspace,
            "revision": number,
            "lifecycle": lifecycle,
            "tasks": [{"type": "init"}],
        },
        "status": {
            "selfLock": {
                "git": {
                    "repo": "https://git/x",
                    "directory": package,
                    "ref": f"{package}/{workspace}",
                    "commit": commit,
                }
            },
            **(status or {}),
        },
    }


def published(package: str = "foo", number: int = 1, **other: Any) -> Json:
    """Return a published PackageRevision."""
    return revision(package, f"v{number}", number=number, **{"lifecycle": "Published", **other})


def repository(name: str = "deployments", *, ready: str = "True", version: str = "1", spec: Json | None = None) -> Json:
    """Return a Repository."""
    return {
        "metadata": {"namespace": "default", "name": name, "resourceVersion": version},
        "spec": {"git": {"repo": "https://git/x", "branch": "main"}, **(spec or {})},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def definition(kind: str = "Team", *, established: str = "True", version: str = "1") -> Json:
    """Return the CustomResourceDefinition of hr.example.com/v1alpha1."""
    return {
        "metadata": {"name": f"{kind.lower()}s.hr.example.com", "resourceVersion": version},
        "spec": {
            "group": "hr.example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [{"name": "v1alpha1", "served": True}, {"name": "v1", "served": False}],
        },
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }
