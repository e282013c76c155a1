"""PackageRev objects, in which upstream keeps the metadata of package revisions, as the package revisions they are about.

They have no spec: what a revision holds is then what Git says. Source: ``porch-api.md`` 2.5.
"""

from typing import Any, Final

from apiserver.engine.revision_body import API_VERSION, KIND

Json = dict[str, Any]

RECORD: Final = "PackageRev"
REPOSITORY_LABEL: Final = "internal.porch.kpt.dev/repository"
_FINALIZER: Final = "internal.porch.kpt.dev/packagerevision"


def record_repository(record: Json) -> str:
    """Return the name of the Repository whose revision a record is about."""
    labels = record["metadata"].get("labels")
    return str(labels.get(REPOSITORY_LABEL) or "") if isinstance(labels, dict) else ""


def revision_of(record: Json) -> Json:
    """Return the package revision as its API would show the metadata: without what upstream adds to its record.

    The UID is the one that the record says its owner has. Fields of the wrong type are left for the check of all objects.
    """
    metadata = dict(record["metadata"])
    name = metadata["name"]
    owners = _list(metadata.get("ownerReferences"))
    own = [one for one in owners if _is_revision(one, name)]
    metadata["uid"] = own[0].get("uid") if own else None
    metadata["ownerReferences"] = [one for one in owners if one not in own]
    metadata["finalizers"] = [one for one in _list(metadata.get("finalizers")) if one != _FINALIZER]
    if isinstance(metadata.get("labels"), dict):
        metadata["labels"] = {key: value for key, value in metadata["labels"].items() if key != REPOSITORY_LABEL}
    for key in ("resourceVersion", "generation", "managedFields"):
        metadata.pop(key, None)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {"repository": record_repository(record)},
    }


def _is_revision(owner: Any, name: str) -> bool:
    return isinstance(owner, dict) and owner.get("kind") == KIND and owner.get("name") == name


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
