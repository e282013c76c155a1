"""Reads the tables ``sets_*.yaml`` of ``tests/data/variants``, and makes the values that their cases speak of."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from krm.variants.revisions import Revision
from krm.variants.sets.targets import SelectedObject
from krm.variants.sets.vocabulary import REPOSITORY

Json = dict[str, Any]
FOLDER = Path(__file__).parents[4] / "data/variants"


def table(name: str) -> Json:
    found: Json = yaml.safe_load((FOLDER / f"sets_{name}.yaml").read_text("utf-8"))
    return found


def cases(name: str, *sections: str) -> list[Any]:
    """Return the cases of a table as parameters, each under its id; of all sections that hold cases unless some are named."""
    written = table(name)
    return [
        pytest.param(case, id=str(case["id"]))
        for section in sections or written
        for case in written[section]
        if isinstance(case, dict) and "id" in case
    ]


def package_variant_set(spec: Any, name: str = "example", **metadata: Any) -> Json:
    meta = {"namespace": "default", "name": name, "uid": "uid-set", "generation": 1, **metadata}
    return {"apiVersion": "config.porch.kpt.dev/v1alpha2", "kind": "PackageVariantSet", "metadata": meta, "spec": spec}


def selected(name: str, labels: Json | None = None, kind: tuple[str, str] = REPOSITORY, **meta: Any) -> SelectedObject:
    return SelectedObject.of({"metadata": {"namespace": "default", "name": name, "labels": labels or {}, **meta}}, kind)


def repositories(written: Json) -> dict[str, SelectedObject]:
    """Make Repositories of ``{name: {label: value}}``."""
    return {name: selected(name, labels) for name, labels in written.items()}


def upstream(**metadata: Any) -> Revision:
    return Revision.of({"metadata": {"namespace": "default", "name": "example-repo.foo.v1", **metadata}})
