"""A namespace in which package variant sets live: repositories by label, an upstream, sets, and the variants that they made."""

from collections.abc import Mapping
from typing import Any

from custom_kinds import DEFINITIONS, definition, open_version
from drafts import accepted
from eventually import eventually
from manifests import repository
from porch_client import CONFIG
from seed_examples import CLUSTERS
from variant_place import Json, Place, blueprint

SETS = "/apis/config.porch.kpt.dev/v1alpha2"
SET_LABEL = "config.porch.kpt.dev/packagevariantset"
UPSTREAM = "example-repo"
FOO: Json = {"repo": UPSTREAM, "package": "foo", "revision": "v1"}


def package_set(name: str, *targets: Json, upstream: Json | None = None, **spec: Any) -> Json:
    """Build a PackageVariantSet; parts of the spec by name."""
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha2",
        "kind": "PackageVariantSet",
        "metadata": {"name": name},
        "spec": {"upstream": upstream or FOO, "targets": list(targets), **spec},
    }


class SetPlace:
    """What people do with sets in a place."""

    def __init__(self, place: Place) -> None:
        self.place, self.porch = place, place.porch

    def prepare(self) -> None:
        """Register the upstream with two packages, and the clusters."""
        self.place.register(UPSTREAM, {"foo@v1": blueprint(), "base-ns@v1": blueprint("base-ns")})
        for name, labels in CLUSTERS.items():
            self.add_repository(name, labels)

    def add_repository(self, name: str, labels: Mapping[str, str]) -> None:
        """Make a Repository whose remote nobody looks at here."""
        body = repository(name, f"http://127.0.0.1:9/{name}.git")
        body["metadata"]["labels"] = dict(labels)
        self.place.create(CONFIG, "repositories", body)

    def define(self, group: str, version: str, kind: str, plural: str) -> None:
        """Have a kind of custom resources served; one that is served already stays as it is."""
        body = definition(open_version(version), kind=kind, plural=plural, group=group)
        assert self.porch.request("POST", DEFINITIONS, body).code in (201, 409)
        eventually(lambda: self._is_served(f"/apis/{group}/{version}", plural))

    def _is_served(self, root: str, plural: str) -> None:
        assert self.porch.request("GET", self.place.path(root, plural)).code == 200

    def add_object(self, group: str, version: str, kind: str, plural: str, name: str, **labels: str) -> None:
        """Make an object of a kind that was defined."""
        body = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name, "labels": labels}}
        self.place.create(f"/apis/{group}/{version}", plural, body)

    def label(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Change labels of a Repository; None removes one."""
        self.place.patch(CONFIG, "repositories", name, {"metadata": {"labels": dict(labels)}})

    def add(self, body: Json) -> Json:
        """Create a set."""
        return self.place.create(SETS, "packagevariantsets", body)

    def change(self, name: str, patch: Json) -> Json:
        """Merge a patch into a set."""
        return self.place.patch(SETS, "packagevariantsets", name, patch)

    def get(self, name: str) -> Json:
        """GET a set."""
        found: Json = accepted(self.porch.request("GET", self.place.path(SETS, "packagevariantsets", name)))
        return found

    def condition(self, name: str, kind: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition of a set."""
        conditions = (self.get(name).get("status") or {}).get("conditions") or []
        return next(
            ((one["status"], one["reason"], one["message"]) for one in conditions if one["type"] == kind), ("", "", "")
        )

    def variants(self, name: str) -> dict[str, Json]:
        """Return the variants of a set by name."""
        uid = self.get(name)["metadata"]["uid"]
        path = self.place.path(CONFIG, "packagevariants") + f"?labelSelector={SET_LABEL}%3D{uid}"
        items = accepted(self.porch.request("GET", path))["items"]
        return {one["metadata"]["name"]: one for one in items}

    def pairs(self, name: str) -> dict[str, str]:
        """Return repository and package of the variants of a set that are not being deleted, by name."""
        return {
            variant: "/".join((one["spec"]["downstream"]["repo"], one["spec"]["downstream"]["package"]))
            for variant, one in self.variants(name).items()
            if not one["metadata"].get("deletionTimestamp")
        }
