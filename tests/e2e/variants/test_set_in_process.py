"""A set from its creation to its end with the controllers as they run, with their own rights: drafts in every repository."""

from collections.abc import Iterator

import pytest
from eventually import eventually
from git_server import GitServer
from porch_client import CONFIG
from porch_process import PorchProcess
from set_place import SETS, SetPlace, package_set
from variant_place import blueprint, new_place

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that runs the controllers; it is stopped in the end."""
    made = PorchProcess(tmp_path_factory.mktemp("sets") / "data", arguments=["--controllers"])
    made.start()
    yield made
    made.stop()


@pytest.fixture
def sets(server: PorchProcess, git_http: GitServer) -> Iterator[SetPlace]:
    """An upstream, and two repositories of a fleet."""
    place = new_place(server, git_http, "fleet")
    place.register("blueprints", {"foo@v1": blueprint(), "foo@v2": blueprint(more_yaml="kind: ConfigMap\n")})
    for name in ("east", "west"):
        place.register(name, deployment=True)
        place.patch(CONFIG, "repositories", name, {"metadata": {"labels": {"fleet": "edge", "region": name}}})
    yield SetPlace(place)
    place.porch.close()


def test_a_set_brings_a_package_into_every_repository_and_takes_it_away(sets: SetPlace) -> None:
    target = {
        "repositorySelector": {"matchLabels": {"fleet": "edge"}},
        "template": {
            "deletionPolicy": "delete",
            "downstream": {"packageExpr": "'foo-' + repository.labels['region']"},
            "packageContext": {"dataExprs": [{"key": "region", "valueExpr": "repository.labels['region']"}]},
        },
    }
    upstream = {"repo": "blueprints", "package": "foo", "revision": 1}
    sets.add(package_set("fleet", target, upstream=upstream))
    eventually(
        lambda: equal(sets.condition("fleet", "ReadyTargets"), ("True", "AllReady", "all 2 targets are ready")),
        timeout=60,
    )
    for region in ("east", "west"):
        files = sets.place.files(f"{region}.foo-{region}.packagevariant-1")
        assert f"region: {region}" in files["package-context.yaml"]
        assert "more.yaml" not in files

    sets.change("fleet", {"spec": {"upstream": {"revision": 2}}})
    eventually(lambda: has_file(sets, "east.foo-east.packagevariant-1", "more.yaml"), timeout=60)
    sets.place.patch(CONFIG, "repositories", "west", {"metadata": {"labels": {"fleet": None}}})
    eventually(lambda: gone(sets, "west.foo-west.packagevariant-1"), timeout=60)
    assert list(sets.pairs("fleet").values()) == ["east/foo-east"]

    assert sets.place.delete(SETS, "packagevariantsets", "fleet").code == 200
    eventually(lambda: gone(sets, "east.foo-east.packagevariant-1"), timeout=60)
    eventually(lambda: equal(sets.place.has_variant("fleet-east-foo-east"), False), timeout=60)


def equal(found: object, expected: object) -> None:
    assert found == expected


def has_file(sets: SetPlace, name: str, file: str) -> None:
    assert file in sets.place.files(name)


def gone(sets: SetPlace, name: str) -> None:
    assert not sets.place.exists(name)
