"""Upstream's API scenarios of creating and changing packages: init, clone, edit, upgrade, their files (37 to 45)."""

from typing import Any

import pytest
import yaml
from remotes import Remote
from upstream_client import Refused, UpstreamClient, name_of, names, revision_of

Object = dict[str, Any]
CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata:
  name: config-map
  annotations:
    kpt.dev/zebra: last
    kpt.dev/ant: first
data:
  key: value
"""
PIPELINE = """pipeline:
  mutators:
    - name: set-annotations
      image: ghcr.io/kptdev/krm-functions-catalog/set-annotations:v0.1.4
      configMap:
        color: red
        fruit: apple
"""


def clone_of(name: str) -> Object:
    return {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": name}}}}


def clone_of_git(remote: Remote, ref: str, directory: str) -> Object:
    git = {"repo": remote.url, "ref": ref, "directory": directory}
    return {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": git}}}


def edit(source: str) -> Object:
    return {"type": "edit", "edit": {"sourceRef": {"name": source}}}


def upgrade(old: str, new: str, local: str) -> Object:
    refs = {"oldUpstreamRef": old, "newUpstreamRef": new, "localPackageRevisionRef": local}
    return {"type": "upgrade", "upgrade": {field: {"name": name} for field, name in refs.items()}}


def kptfile(suite: UpstreamClient, name: str) -> Any:
    return yaml.safe_load(suite.resources(name)["spec"]["resources"]["Kptfile"])


def test_scenario_37_a_registered_revision_is_cloned_and_its_placeholder_is_refused(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("test-blueprints", test_blueprints_remote)
    suite.register("downstream", porch_test)

    with pytest.raises(Refused, match="placeholder package revision"):
        suite.make("downstream", "istions", "test-workspace", clone_of("test-blueprints.basens.main"))
    (upstream,) = suite.revisions(fields="spec.repository=test-blueprints,spec.packageName=basens,spec.revision=1")
    cloned = suite.make("downstream", "istions", "test-workspace", clone_of(name_of(upstream)))

    made = kptfile(suite, name_of(cloned))
    assert made["metadata"]["name"] == "istions"
    git = {"repo": test_blueprints_remote.url, "directory": "basens", "ref": "basens/v1"}
    assert made["upstream"] == {"type": "git", "git": git}
    commit = upstream["status"]["selfLock"]["git"]["commit"]
    assert made["upstreamLock"] == {"type": "git", "git": {**git, "commit": commit}}
    assert cloned["status"]["upstreamLock"] == made["upstreamLock"]


def test_scenario_38_a_clone_into_a_deployment_repository_has_a_package_context(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("deployment", porch_test, deployment=True)

    cloned = suite.make("deployment", "istions", "test-workspace", clone_of_git(test_blueprints_remote, "v1", "basens"))

    assert cloned["status"]["deployment"] is True
    made = kptfile(suite, name_of(cloned))
    assert made["metadata"]["name"] == "istions"
    lock = made["upstreamLock"]["git"]
    assert (lock["repo"], lock["directory"], lock["ref"]) == (test_blueprints_remote.url, "basens", "v1")
    context = yaml.safe_load(suite.resources(name_of(cloned))["spec"]["resources"]["package-context.yaml"])
    assert (context["kind"], context["metadata"]["name"]) == ("ConfigMap", "kptfile.kpt.dev")
    assert context["data"]["name"] == "istions"


def test_scenario_39_the_directory_of_a_clone_may_begin_with_a_slash(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("git", porch_test)

    cloned = suite.make("git", "new-package", "test-workspace", clone_of_git(test_blueprints_remote, "v1", "/basens"))

    made = kptfile(suite, name_of(cloned))
    assert made["metadata"]["name"] == "new-package"
    assert made["upstream"]["git"]["directory"] == "basens"
    assert "namespace.yaml" in suite.resources(name_of(cloned))["spec"]["resources"]


def test_scenario_40_a_package_is_upgraded_without_a_strategy_and_placeholders_are_refused(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("test-blueprints", test_blueprints_remote)
    suite.register("downstream", porch_test)
    old, new, placeholder = (f"test-blueprints.basens.{workspace}" for workspace in ("v1", "v2", "main"))
    first = suite.make("downstream", "testns", "v1", clone_of(old))
    files = suite.resources(name_of(first))
    assert "resourcequota.yaml" not in files["spec"]["resources"]
    files["spec"]["resources"]["config-map.yaml"] = CONFIG_MAP
    suite.update(files)
    suite.publish(name_of(first))

    second = suite.make("downstream", "testns", "v2", upgrade(old, new, name_of(first)))

    assert [task["type"] for task in second["spec"]["tasks"]] == ["upgrade"]
    assert second["spec"]["tasks"][0]["upgrade"]["newUpstreamRef"] == {"name": new}
    assert second["status"]["upstreamLock"]["git"]["ref"] == "basens/v2"
    merged = suite.resources(name_of(second))["spec"]["resources"]
    assert {"resourcequota.yaml", "config-map.yaml", "namespace.yaml"} <= set(merged)
    assert kptfile(suite, name_of(second))["metadata"]["name"] == "testns"
    suite.publish(name_of(second))
    with pytest.raises(Refused, match="placeholder package revision"):
        suite.make("downstream", "testns", "v3", upgrade(old, placeholder, name_of(second)))
    with pytest.raises(Refused, match="placeholder package revision"):
        suite.make("downstream", "testns", "v3", upgrade(old, new, "downstream.testns.main"))
    assert not suite.exists("downstream.testns.v3")


def test_scenario_41_an_edit_starts_from_a_published_revision_of_the_same_package(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("git", porch_test)
    package, other = "simple-package", "simple-other-package"
    source = name_of(suite.make("git", package, "test-workspace"))
    other_source = name_of(suite.make_published("git", other, "test-workspace"))

    with pytest.raises(Refused, match="source revision must be from same package git/simple-package"):
        suite.make("git", package, "test-edit", edit(other_source))
    with pytest.raises(Refused, match="source revision must be published"):
        suite.make("git", package, "test-edit", edit(source))
    suite.publish(source)
    edited = suite.make("git", package, "test-edit", edit(source))
    assert suite.revision(name_of(edited))["spec"]["tasks"] == [edit(source)]
    with pytest.raises(Refused, match="placeholder package revision"):
        suite.make("git", package, "test-edit-of-main", edit(f"git.{package}.main"))


def test_scenario_42_a_new_file_and_a_pipeline_are_saved_and_rendered(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("git", porch_test)
    draft = name_of(suite.make("git", "test-package", "workspace"))
    files = suite.resources(draft)
    files["spec"]["resources"]["Kptfile"] += PIPELINE
    files["spec"]["resources"]["config-map.yaml"] = CONFIG_MAP

    suite.update(files)

    again = suite.resources(draft)
    rendered = yaml.safe_load(again["spec"]["resources"]["config-map.yaml"])
    wanted = {"kpt.dev/zebra": "last", "kpt.dev/ant": "first", "color": "red", "fruit": "apple"}
    assert rendered["metadata"]["annotations"] == wanted
    assert rendered["data"] == {"key": "value"}
    assert (
        yaml.safe_load(again["spec"]["resources"]["Kptfile"])["metadata"]["annotations"].items()
        >= {"color": "red"}.items()
    )
    assert again["status"]["renderStatus"] == {"error": "", "result": {"exitCode": 0, "metadata": {}}}


def test_scenario_43_an_update_that_changes_nothing_is_accepted(suite: UpstreamClient, porch_test: Remote) -> None:
    suite.register("git", porch_test)
    draft = name_of(suite.make("git", "test-package", "workspace"))
    before = suite.resources(draft)
    assert before["metadata"]["name"] == draft

    suite.update(before)

    after = suite.resources(draft)
    assert after["spec"] == before["spec"]
    assert after["status"] == before["status"]


def test_scenario_44_an_empty_package_says_what_it_was_described_as(suite: UpstreamClient, porch_test: Remote) -> None:
    suite.register("git", porch_test)
    wanted = revision_of("git", "empty-package", "test-workspace", namespace=suite.namespace)
    del wanted["spec"]["tasks"]

    created = suite.create(wanted)

    assert created["spec"]["tasks"] == [{"type": "init", "init": {"description": "empty-package description"}}]
    assert name_of(created) in names(suite.revisions(fields="spec.lifecycle=Draft"))
    made = kptfile(suite, name_of(created))
    assert made["metadata"]["name"] == "empty-package"
    assert made["info"]["description"] == "empty-package description"


def test_scenario_45_the_fields_of_an_init_task_are_in_the_kptfile(suite: UpstreamClient, porch_test: Remote) -> None:
    suite.register("git", porch_test)
    info = {"description": "New Package", "keywords": ["test", "package"], "site": "https://kpt.dev/new-package"}

    created = suite.make("git", "new-package", "test-workspace", {"type": "init", "init": info})

    assert kptfile(suite, name_of(created))["info"] == info
    assert suite.revision(name_of(created))["spec"]["tasks"] == [{"type": "init", "init": info}]
