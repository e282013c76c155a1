"""An old Porch server for tests of ``porch adopt``: what a live upstream held (``tests/data/porch-adopt``), in files or as answers.

Remotes are directories of the test's own; the recorded addresses are rewritten to them.
"""

import asyncio
import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import remotes
import yaml

from apiserver.adoption.adopt import Done, How, Origin, adopt
from apiserver.adoption.objects import register_all
from apiserver.adoption.planner import Wishes
from apiserver.engine.package_index import RESOURCE, revision_fields
from apiserver.settings import Settings
from apiserver.standalone import create_store
from storage.bodies import decode
from storage.outbox import Parcel

Json = dict[str, Any]
DATA = Path(__file__).parent / "data" / "porch-adopt"
NAMESPACE = "sites"
ADDRESS = "http://gitea.gitea.svc.cluster.local:3000/nephio"
CREATED = "2026-11-21T14:11:31Z"


def recorded(name: str) -> list[Json]:
    """Return the objects of one recorded list."""
    items: list[Json] = yaml.load((DATA / f"{name}.yaml").read_text(), Loader=yaml.CSafeLoader)["items"]
    return items


def surroundings() -> list[Json]:
    """Return what the recorded objects refer to and the recording does not hold: Secrets, and a draft's owner."""
    owner_uid = "f649726b-4da1-4949-a816-fe7ddbe244d4"
    return [
        thing("ConfigMap", "owner", owner_uid, data={"key": "value"}),
        *(
            thing("Secret", f"{name}-auth", f"{name}-secret", type="kubernetes.io/basic-auth", data=LOGIN)
            for name in ("edge", "blueprints")
        ),
    ]


LOGIN = {"username": "cG9yY2g=", "password": "Y29ycmVjdC1ob3JzZQ=="}
"""User and password of the fixtures' Git server (``remotes.PUSHER``), as Secrets hold them."""


def thing(kind: str, name: str, uid: str, api_version: str = "v1", **rest: Any) -> Json:
    """Build an object of the old server."""
    metadata = {"name": name, "namespace": NAMESPACE, "uid": uid, "creationTimestamp": CREATED}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def make_remotes(root: Path) -> None:
    """Make the two recorded repositories."""
    remotes.init_bare(root / "edge")
    remotes.git("fetch", "--quiet", str(DATA / "edge.bundle"), "refs/*:refs/*", cwd=root / "edge")
    remotes.blueprints_remote(root / "test-blueprints.git")


@dataclass
class OldInstallation:
    """The recorded objects, to be changed by a test, and one run of the command on them after the other."""

    folder: Path
    remotes: str
    """The address that the recorded one stands for."""
    repositories: list[Json] = field(default_factory=lambda: recorded("repositories"))
    revisions: list[Json] = field(default_factory=lambda: recorded("packagerevisions"))
    others: list[Json] = field(default_factory=surroundings)
    said: list[str] = field(default_factory=list)
    database_url: str = ""

    @property
    def settings(self) -> Settings:
        """The new server's settings."""
        return Settings(data=self.data, database_url=self.database_url)

    @property
    def data(self) -> Path:
        """The new server's data directory."""
        return self.folder / "data"

    @property
    def files(self) -> Path:
        """Where the old server's objects are written to."""
        return self.folder / "old"

    def revision(self, name: str) -> Json:
        """Return one recorded package revision."""
        return next(item for item in self.revisions if item["metadata"]["name"] == name)

    def without_blueprints(self) -> None:
        """Leave the larger repository away."""
        self.repositories = [item for item in self.repositories if item["metadata"]["name"] == "edge"]

    def write(self) -> None:
        """Write the objects as kubectl prints them."""
        self.files.mkdir(exist_ok=True)
        for name in ("repositories", "revisions", "others"):
            (self.files / f"{name}.json").write_text(json.dumps({"kind": "List", "items": getattr(self, name)}))

    def adopt(
        self,
        *,
        apply: bool = False,
        partly: bool = False,
        origin: Origin | None = None,
        as_json: bool = False,
        **wishes: bool,
    ) -> Done:
        """Run the command in process; what it said is in ``said``."""
        self.said = []
        if origin is None:
            self.write()
        return asyncio.run(
            adopt(
                self.settings,
                origin or Origin(self.files),
                Wishes(addresses={ADDRESS: self.remotes}, **wishes),
                self.said.append,
                How(write=apply, partly=partly, everything=True, json=as_json),
            )
        )

    def told(self, about: str) -> str:
        """Return what the last run said of one object among differences and problems."""
        return "\n".join(line for line in self.said if line.startswith((f"  {about}: ", f"  {NAMESPACE}/{about}: ")))

    def held(self) -> dict[tuple[str, str], Json]:
        """Return what the new server's database holds: resource and name → object."""
        return asyncio.run(_held(self.settings))

    def parcel(self, name: str) -> Parcel:
        """Return what Git is still to be told of a package revision."""
        return asyncio.run(_parcel(self.settings, name))


async def _parcel(settings: Settings, name: str) -> Parcel:
    store = create_store(settings)
    await store.start()
    try:
        found = await store.outbox.parcel(f"{NAMESPACE}/edge", name)
        assert found is not None
        return found
    finally:
        await store.stop()


async def _held(settings: Settings) -> dict[tuple[str, str], Json]:
    store = create_store(settings)
    register_all(store)
    store.register(RESOURCE, revision_fields)
    await store.start()
    try:
        kinds = ["namespaces", "secrets", "configmaps", RESOURCE]
        kinds += ["repositories.config.porch.kpt.dev", "packagevariants.config.porch.kpt.dev"]
        return {(kind, entry.name): decode(entry) for kind in kinds for entry in store.snapshot(kind)}
    finally:
        await store.stop()


def metadata_of(item: Json) -> Json:
    """Return what an adoption keeps of an object's metadata."""
    kept = ("name", "namespace", "uid", "creationTimestamp", "labels", "annotations", "ownerReferences", "finalizers")
    return {key: copy.deepcopy(item["metadata"][key]) for key in kept if item["metadata"].get(key)}
