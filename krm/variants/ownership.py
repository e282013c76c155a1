"""How a variant marks the package revisions that are its own: owner reference, marker label, its labels and annotations.

Source: ``variants.md`` 2.5, 2.6 and 2.12; C-40.
"""

from collections.abc import Collection
from typing import Any

from krm.variants.retirement import Rewrite
from krm.variants.variant import Variant
from krm.variants.vocabulary import API_VERSION, KIND, MARKER_LABEL

Json = dict[str, Any]


def owner_reference(variant: Variant) -> Json:
    """Return the reference by which the garbage collector, and everybody else, finds the variant."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": variant.name,
        "uid": variant.uid,
        "controller": True,
    }


def new_metadata(variant: Variant, name: str) -> Json:
    """Return the metadata of a package revision that the variant creates: nothing is taken from what it is made of."""
    metadata: Json = {
        "name": name,
        "namespace": variant.namespace,
        "ownerReferences": [owner_reference(variant)],
        "labels": {**variant.labels, MARKER_LABEL: variant.uid},
    }
    return {**metadata, "annotations": dict(variant.annotations)} if variant.annotations else metadata


def adopted(body: Json, variant: Variant, dead: Collection[str] = ()) -> Json:
    """Return a package revision as it is once the variant owns it, for one update.

    The variant's labels and annotations win over those that are there. ``dead`` are UIDs of owners that are no more:
    their references are replaced. One that is owned already comes back as it is.
    """
    metadata = body["metadata"]
    owners = metadata.get("ownerReferences") or ()
    if any(one.get("uid") == variant.uid for one in owners):
        return body
    kept = [one for one in owners if one.get("uid") not in dead]
    labels = {**(metadata.get("labels") or {}), **variant.labels, MARKER_LABEL: variant.uid}
    annotations = {**(metadata.get("annotations") or {}), **variant.annotations}
    changed = {**metadata, "ownerReferences": [*kept, owner_reference(variant)], "labels": labels}
    return {**body, "metadata": {**changed, "annotations": annotations} if annotations else changed}


def rewritten(body: Json, change: Rewrite, variant_uid: str) -> Json:
    """Return a package revision as a retirement wants it, for one update; what is others' stays."""
    metadata, spec = dict(body["metadata"]), dict(body.get("spec") or {})
    if change.drop_owner:
        owners = [one for one in metadata.get("ownerReferences") or () if one.get("uid") != variant_uid]
        metadata["ownerReferences"] = owners
    if change.drop_marker and (metadata.get("labels") or {}).get(MARKER_LABEL) == variant_uid:
        metadata["labels"] = {key: value for key, value in metadata["labels"].items() if key != MARKER_LABEL}
    if change.lifecycle is not None:
        spec["lifecycle"] = change.lifecycle
    return {**body, "metadata": metadata, "spec": spec}
