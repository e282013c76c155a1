"""The PackageVariantSet controller as the user that controllers are: with their rights and nothing more.

In a cluster a service account has the same (``tests/unit/test_charts_rbac.py`` compares). What it may not read is told in the
condition of the set that asks for it, holds up no other set, and is mended by the right alone. Source: ``variants.md`` 1.8, 3.2,
3.8; ``decisions.md`` 16.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from custom_kinds import readable
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from live_set_controller import LiveSetController, live_set_controller
from porch_process import PorchProcess
from set_place import SetPlace, package_set
from variant_place import Json, new_place

from apiserver.auth.issuing import user_kubeconfig
from controllers.runtime import kind_watches

USER = "system:porch-controllers"
SENSOR = ("example.com", "v1", "Sensor", "sensors")
MACHINE = ("example.com", "v1", "Machine", "machines")
WAIT = 60.0
NAMED: Json = {"repositories": [{"name": "cluster-02"}]}


@pytest.fixture(scope="module")
def admin(porch_server: PorchProcess, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The administrator, who lets Machines be selected."""
    made = Kubectl(porch_server.kubeconfig, "default", str(tmp_path_factory.mktemp("cache")))
    made.apply(readable("example.com", "machines"))
    return made


@pytest.fixture(scope="module")
def sets(porch_server: PorchProcess, git_http: GitServer) -> Iterator[SetPlace]:
    """A place with two kinds of objects, one of each that is a target."""
    made = SetPlace(new_place(porch_server, git_http, "set-rights"))
    made.prepare()
    for kind, name in ((SENSOR, "cluster-01"), (MACHINE, "cluster-03")):
        made.define(*kind)
        made.add_object(*kind, name)
    yield made
    made.porch.close()


@pytest.fixture
def controller(
    admin: Kubectl, sets: SetPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveSetController]:
    """The controller as that user; what it may not read it tries again each second in place of each minute."""
    monkeypatch.setattr(kind_watches, "Limits", partial(kind_watches.Limits, retry=1.0, round=0.5))
    (tmp_path / "kubeconfig").write_bytes(user_kubeconfig(sets.place.server.data, USER, []))
    with live_set_controller(tmp_path / "kubeconfig", sets.place.namespace) as made:
        yield made


def objects(kind: tuple[str, str, str, str]) -> Json:
    return {"objectSelector": {"apiVersion": f"{kind[0]}/{kind[1]}", "kind": kind[2]}}


def pairs_are(sets: SetPlace, name: str, *pairs: str) -> None:
    assert sorted(sets.pairs(name).values()) == sorted(pairs)


def condition_is(sets: SetPlace, name: str, kind: str, status: str, reason: str) -> str:
    found = sets.condition(name, kind)
    assert found[:2] == (status, reason), found
    return found[2]


def test_the_rights_are_enough_for_repositories_and_for_kinds_that_a_role_names(
    sets: SetPlace, controller: LiveSetController
) -> None:
    by_label: Json = {"repositorySelector": {"matchLabels": {"env": "prod", "org": "hr"}}}
    sets.add(package_set("allowed", by_label, {**objects(MACHINE), "packageNames": ["machine"]}))
    packages = [f"cluster-0{number}/foo" for number in (1, 3, 4)]
    eventually(lambda: pairs_are(sets, "allowed", *packages, "cluster-03/machine"), timeout=WAIT)
    eventually(lambda: condition_is(sets, "allowed", "Ready", "True", "Reconciled"), timeout=WAIT)

    sets.change("allowed", {"spec": {"targets": [{**NAMED, "template": {"labels": {"a": "1"}}}]}})
    eventually(lambda: pairs_are(sets, "allowed", "cluster-02/foo"), timeout=WAIT)
    sets.change("allowed", {"spec": {"targets": [{**NAMED, "template": {"labels": {"a": "2"}}}]}})
    eventually(lambda: label_is(sets, "2"), timeout=WAIT)


def label_is(sets: SetPlace, label: str) -> None:
    assert sets.variants("allowed")["allowed-cluster-02-foo"]["spec"]["labels"] == {"a": label}


def test_a_kind_that_may_not_be_read_is_told_and_mended_by_the_right_alone(
    admin: Kubectl, sets: SetPlace, controller: LiveSetController
) -> None:
    sets.add(package_set("sensors", NAMED, objects(SENSOR)))
    sets.add(package_set("beside", NAMED))
    message = eventually(lambda: condition_is(sets, "sensors", "Stalled", "True", "UnexpectedError"), timeout=WAIT)
    assert message.startswith("spec.targets[1].objectSelector: ")
    assert f'User "{USER}" cannot list resource "sensors" in API group "example.com"' in message
    assert message.endswith(
        "; a ClusterRole with the label config.porch.kpt.dev/aggregate-to-injectables gives that right"
    )
    assert sets.pairs("sensors") == {}, "also not of the target that could be read"
    eventually(lambda: pairs_are(sets, "beside", "cluster-02/foo"), timeout=WAIT)

    admin.apply(readable("example.com", "sensors"))

    eventually(lambda: pairs_are(sets, "sensors", "cluster-01/foo", "cluster-02/foo"), timeout=WAIT)
    eventually(lambda: condition_is(sets, "sensors", "Stalled", "False", "Valid"), timeout=WAIT)


@pytest.mark.parametrize("granted", [False, True])
def test_secrets_are_not_selected_whatever_a_role_says(
    admin: Kubectl, sets: SetPlace, controller: LiveSetController, *, granted: bool
) -> None:
    name = f"secrets-{granted}".lower()
    if granted:
        admin.apply(readable("", "secrets"))
    sets.add(package_set(name, {"objectSelector": {"apiVersion": "v1", "kind": "Secret"}}))

    message = eventually(lambda: condition_is(sets, name, "Stalled", "True", "UnexpectedError"), timeout=WAIT)
    assert message == "spec.targets[0].objectSelector: objects of kind Secret are never selected"
