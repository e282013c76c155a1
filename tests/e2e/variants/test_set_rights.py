"""The PackageVariantSet controller with the rights of ``charts/porch/rbac-controllers.yaml`` and nothing more.

What it may not read is told in the condition of the set that asks for it, holds up no other set, and is mended by the right alone.
Source: ``variants.md`` 1.8, 3.2, 3.8; ``decisions.md`` 16.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from live_set_controller import LiveSetController, live_set_controller
from porch_process import PorchProcess
from set_place import SetPlace, package_set
from variant_place import Json, new_place

from controllers.runtime import kind_watches

CHART = Path(__file__).parents[3] / "charts" / "porch" / "rbac-controllers.yaml"
USER = "system:serviceaccount:porch-system:porch-controllers"
SENSOR = ("example.com", "v1", "Sensor", "sensors")
MACHINE = ("example.com", "v1", "Machine", "machines")
WAIT = 60.0
NAMED: Json = {"repositories": [{"name": "cluster-02"}]}


@pytest.fixture(scope="module")
def admin(porch_server: PorchProcess, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The administrator, who has applied the chart's roles and lets Machines be selected."""
    made = Kubectl(porch_server.kubeconfig, "porch-system", str(tmp_path_factory.mktemp("cache")))
    made.ok("apply", "-f", str(CHART))
    made.apply(selectable("machines"))
    return made


def selectable(plural: str) -> Json:
    """Build the role that lets objects of a kind be selected, as the guide says."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": f"selectable-{plural}",
            "labels": {"config.porch.kpt.dev/aggregate-to-injectables": "true"},
        },
        "rules": [{"apiGroups": ["example.com"], "resources": [plural], "verbs": ["get", "list", "watch"]}],
    }


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
    """The controller as that service account; what it may not read it tries again each second in place of each minute."""
    monkeypatch.setattr(kind_watches, "Limits", partial(kind_watches.Limits, retry=1.0, round=0.5))
    config: dict[str, Any] = yaml.safe_load(admin.kubeconfig.read_text())
    token = admin.ok("create", "token", "porch-controllers").strip()
    config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": {"token": token}}]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
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
    assert sets.pairs("sensors") == {}, "also not of the target that could be read"
    eventually(lambda: pairs_are(sets, "beside", "cluster-02/foo"), timeout=WAIT)

    admin.apply(selectable("sensors"))

    eventually(lambda: pairs_are(sets, "sensors", "cluster-01/foo", "cluster-02/foo"), timeout=WAIT)
    eventually(lambda: condition_is(sets, "sensors", "Stalled", "False", "Valid"), timeout=WAIT)


@pytest.mark.parametrize("granted", [False, True])
def test_secrets_are_not_selected_whatever_a_role_says(
    admin: Kubectl, sets: SetPlace, controller: LiveSetController, *, granted: bool
) -> None:
    name = f"secrets-{granted}".lower()
    if granted:
        role = selectable("secrets")
        role["rules"][0]["apiGroups"] = [""]
        admin.apply(role)
    sets.add(package_set(name, {"objectSelector": {"apiVersion": "v1", "kind": "Secret"}}))

    message = eventually(lambda: condition_is(sets, name, "Stalled", "True", "UnexpectedError"), timeout=WAIT)
    assert message == "spec.targets[0].objectSelector: objects of kind Secret are never selected"
