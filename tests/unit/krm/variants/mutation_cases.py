"""Tables of ``tests/data/variants``, and what a mutation is made of."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from krm.package.yaml_reader import read_document
from krm.variants.mutation import Listing
from krm.variants.variant import Variant

Json = dict[str, Any]

NAMED = "default/prr"
HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app # the package's\n"

_DATA = Path(__file__).parents[3] / "data" / "variants"
_ENDPOINTS = [
    {"metadata": {"name": f"{region}-endpoints"}, "data": {"db": f"db.{region}.example.com"}}
    for region in ("us-east1", "us-east2", "us-east3")
]
_TEAMS = [
    {"metadata": {"name": name}, "spec": {"chargeCode": code}}
    for name, code in (("dev-team-alpha", "ab"), ("dev-team-beta", "cd"), ("prod-team", "ef"))
]
_CLUSTER: list[Json] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "objects": _ENDPOINTS},
    {"apiVersion": "hr.example.com/v1alpha1", "kind": "Team", "objects": _TEAMS},
]


def table(name: str) -> list[Json]:
    """Return the rows of a table."""
    rows: list[Json] = read_document((_DATA / f"{name}.yaml").read_text())
    return rows


def cases(rows: Iterable[Json]) -> list[ParameterSet]:
    """Return rows as parameters of a test, called by their ids."""
    return [pytest.param(row, id=row["id"]) for row in rows]


def golden_ids(rows: Iterable[Json]) -> set[str]:
    """Return the ids of golden cases in a table."""
    return {row["id"] for row in rows if row["id"].startswith("G-")}


def numbered(letter: str, last: int) -> set[str]:
    """Return the ids that a section of the specification has."""
    return {f"G-{letter}{number:02}" for number in range(1, last + 1)}


def variant(name: str = "my-pv", **spec: Any) -> Variant:
    """Return a variant with these parts of a spec."""
    return Variant.of({"metadata": {"namespace": "default", "name": name, "uid": "u1"}, "spec": spec})


def listings(cluster: Iterable[Json] = ()) -> Mapping[tuple[str, str], Listing]:
    """Return what the cluster of the table has, and ``cluster`` beside it or in its place."""
    return {
        (one["apiVersion"], one["kind"]): Listing(
            {item["metadata"]["name"]: item for item in one.get("objects", ())}, one.get("error", "")
        )
        for one in (*_CLUSTER, *cluster)
    }
