"""Upstream's API scenarios of metadata that lives beside Git, and of selectors (52 to 56)."""

from typing import Any

from eventually import eventually
from remotes import Remote
from upstream_client import UpstreamClient, labels_of, name_of, names, revision_of

Object = dict[str, Any]
LATEST = "kpt.dev/latest-revision"
FINALIZER = "cluster.x-k8s.io/a-finalizer-of-the-test"


def clone_of(name: str) -> Object:
    return {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": name}}}}


def annotations_of(obj: Object) -> Object:
    found: Object = obj["metadata"].get("annotations") or {}
    return found


def test_scenario_52_labels_and_annotations_of_a_revision_survive_its_life_and_are_not_cloned(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("git", porch_test)
    suite.register("test-blueprints", test_blueprints_remote)
    labels, annotations = {"kubernetes.io/test": "a-label"}, {"kubernetes.io/note": "an annotation"}
    wanted = revision_of("git", "new-package", "v1", namespace=suite.namespace)
    wanted["metadata"] |= {"labels": labels, "annotations": annotations}

    created = suite.create(wanted)
    assert (labels_of(created), annotations_of(created)) == (labels, annotations)
    proposed = suite.propose(name_of(created))
    assert (labels_of(proposed), annotations_of(proposed)) == (labels, annotations)
    approved = suite.approve(name_of(created))
    assert labels_of(approved) == {**labels, LATEST: "true"}
    assert annotations_of(approved) == annotations

    approved["metadata"]["labels"]["label-1"] = "value-1"
    approved["metadata"]["annotations"] = {"annotation-1": "value-2"}
    changed = suite.update(approved)
    assert labels_of(changed) == {**labels, "label-1": "value-1", LATEST: "true"}
    assert annotations_of(changed) == {"annotation-1": "value-2"}
    assert labels_of(suite.revision(name_of(created))) == labels_of(changed)

    cloned = suite.make("git", "clone-package", "v1", clone_of(name_of(created)))
    assert not labels_of(cloned)
    assert not annotations_of(cloned)

    discovered = suite.revision("test-blueprints.basens.v1")
    discovered["metadata"]["labels"] = {**labels_of(discovered), **labels}
    discovered["metadata"]["annotations"] = annotations
    suite.update(discovered)
    again = suite.revision("test-blueprints.basens.v1")
    assert (labels_of(again), annotations_of(again)) == (labels, annotations)


def config_map(name: str, owner: Object | None = None) -> Object:
    """Build a ConfigMap; its Go type encodes like any other."""
    owners = {"ownerReferences": [_reference(owner)]} if owner else {}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, **owners}, "data": {"key": "value"}}


def _reference(owner: Object) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": owner["metadata"]["uid"],
    }


def test_scenario_53_owners_and_what_they_own_are_collected_in_both_directions(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("gc-test", porch_test)

    owner = suite.make("gc-test", "gc-owner", "workspace")
    suite.create(config_map("owned-by-a-revision", owner))
    suite.delete(owner)
    eventually(lambda: _gone(suite, "ConfigMap", "owned-by-a-revision"))

    config = suite.create(config_map("owner-of-a-revision"))
    owned = suite.make("gc-test", "gc-owned", "workspace")
    owned["metadata"]["ownerReferences"] = [_reference(config)]
    assert suite.update(owned)["metadata"]["ownerReferences"] == [_reference(config)]
    suite.delete(config)
    eventually(lambda: _gone(suite, "PackageRevision", name_of(owned)))


def _gone(suite: UpstreamClient, kind: str, name: str) -> None:
    assert not suite.exists(name, kind), f"{kind} {name} is still there"


def test_scenario_54_field_selectors_find_revisions_alone_and_together(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("test-blueprints", test_blueprints_remote)
    suite.register("git", porch_test)
    draft = suite.make("git", "test-selectors", "workspace")

    by_package = suite.revisions(fields="spec.packageName=redis-bucket")
    assert sorted(names(by_package)) == ["test-blueprints.redis-bucket.main", "test-blueprints.redis-bucket.v1"]
    by_revision = suite.revisions(fields="spec.revision=1")
    assert by_revision
    assert {one["spec"]["revision"] for one in by_revision} == {1}
    by_workspace = suite.revisions(fields="spec.workspaceName=v2")
    assert sorted(names(by_workspace)) == ["test-blueprints.basens.v2", "test-blueprints.update.v2"]
    published = suite.revisions(fields="spec.lifecycle=Published")
    assert len(published) == 10 + 6
    assert {one["spec"]["lifecycle"] for one in published} == {"Published"}
    assert names(suite.revisions(fields="spec.lifecycle=Draft")) == [name_of(draft)]
    together = "spec.repository=test-blueprints,spec.packageName=basens,spec.revision=2,spec.lifecycle=Published"
    assert names(suite.revisions(fields=together)) == ["test-blueprints.basens.v2"]
    only_draft = "spec.revision=0,spec.packageName=test-selectors,spec.workspaceName=workspace,spec.repository=git"
    assert names(suite.revisions(fields=only_draft)) == [name_of(draft)]
    assert suite.revisions(fields="spec.packageName=redis-bucket,spec.lifecycle=Draft") == []


def test_scenario_55_label_selectors_find_users_labels_and_the_latest_revision(
    suite: UpstreamClient, test_blueprints_remote: Remote
) -> None:
    suite.register("test-blueprints", test_blueprints_remote)
    revision = suite.revision("test-blueprints.basens.v1")
    revision["metadata"]["labels"] = {**labels_of(revision), "kpt.dev/label": "foo"}
    suite.update(revision)

    assert names(suite.revisions(labels="kpt.dev/label=foo")) == ["test-blueprints.basens.v1"]
    assert suite.revisions(labels="kpt.dev/label=bar") == []
    latest = suite.revisions(fields="spec.packageName=basens", labels=f"{LATEST}=true")
    assert names(latest) == ["test-blueprints.basens.v4"]


def test_scenario_56_a_finalizer_holds_a_revision_until_it_is_removed(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("finalizers", porch_test)
    draft = suite.make("finalizers", "test-finalizers", "workspace")
    draft["metadata"]["finalizers"] = [FINALIZER]
    held = suite.update(draft)
    assert held["metadata"]["finalizers"] == [FINALIZER]

    suite.delete(held)
    marked = suite.revision(name_of(draft))
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["finalizers"] == [FINALIZER]

    marked["metadata"]["finalizers"] = []
    suite.update(marked)
    assert not suite.exists(name_of(draft))
