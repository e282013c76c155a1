"""Upstream's API scenarios of functions: what runs, what is shown of it, what happens when it fails (1, 17, 18, 21, 26 to 28)."""

from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from remotes import Remote
from upstream_client import Refused, UpstreamClient, name_of

Object = dict[str, Any]
CATALOG = "ghcr.io/kptdev/krm-functions-catalog"
RENDER_FAILED = "error rendering package in kpt function pipeline"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-map\ndata:\n  key: value\n"
ADD_ANNOTATION = """for resource in ctx.resource_list["items"]:
  resource["metadata"].setdefault("annotations", {})["foo"] = "bar"
"""
FAIL = 'fail("this mutator fails")\n'


def function(name: str, **config: str) -> Object:
    return {"image": f"{CATALOG}/{name}", "configMap": config}


def clone_of_git(remote: Remote, ref: str, directory: str) -> Object:
    git = {"repo": remote.url, "ref": ref, "directory": directory}
    return {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": git}}}


def with_pipeline(files: Object, *, mutators: Sequence[Object] = (), validators: Sequence[Object] = ()) -> Object:
    """Return the PackageRevisionResources with another pipeline in its Kptfile."""
    kptfile = yaml.safe_load(files["spec"]["resources"]["Kptfile"])
    wanted = {"mutators": mutators, "validators": validators}
    kptfile["pipeline"] = {kind: list(functions) for kind, functions in wanted.items() if functions}
    files["spec"]["resources"]["Kptfile"] = yaml.safe_dump(kptfile, sort_keys=False)
    return files


def annotations(files: Object, path: str) -> Any:
    return yaml.safe_load(files["spec"]["resources"][path])["metadata"].get("annotations") or {}


def test_scenario_01_a_package_with_a_file_of_five_mebibytes_is_saved_and_rendered(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("git", porch_test)
    draft = name_of(suite.make("git", "large-package", "v1"))
    value = "a" * (5 << 20)
    files = with_pipeline(suite.resources(draft), mutators=[function("set-annotations:v0.1.4", large="true")])
    files["spec"]["resources"]["largefile.yaml"] = CONFIG_MAP.replace("key: value", f"key: {value}")

    saved = suite.update(files)

    assert saved["status"]["renderStatus"]["error"] == ""
    assert saved["status"]["renderStatus"]["result"]["exitCode"] == 0
    again = yaml.safe_load(suite.resources(draft)["spec"]["resources"]["largefile.yaml"])
    assert again["data"]["key"] == value
    assert again["metadata"]["annotations"] == {"large": "true"}


def test_scenario_17_starlark_and_set_namespace_run_and_their_results_are_in_the_answer(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    functions = [function("starlark:v0.4.3", source=ADD_ANNOTATION), function("set-namespace:v0.4.1", namespace="here")]

    for bucket in _bucket_in_answer_and_again(suite, porch_test, test_blueprints_remote, functions):
        assert bucket["metadata"]["namespace"] == "here"
        assert bucket["metadata"]["annotations"]["foo"] == "bar"


def test_scenario_18_older_starlark_and_set_annotations_run_and_their_results_are_in_the_answer(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    functions = [function("starlark:v0.3.0", source=ADD_ANNOTATION), function("set-annotations:v0.1.4", color="red")]

    for bucket in _bucket_in_answer_and_again(suite, porch_test, test_blueprints_remote, functions):
        assert bucket["metadata"]["annotations"]["foo"] == "bar"
        assert bucket["metadata"]["annotations"]["color"] == "red"


def _bucket_in_answer_and_again(
    suite: UpstreamClient, remote: Remote, blueprints: Remote, functions: list[Object]
) -> list[Any]:
    """Clone the bucket, run functions on it, and return it as the update answers and as it is read then."""
    suite.register("git", remote)
    draft = suite.make("git", "test-functions", "test-workspace", clone_of_git(blueprints, "bucket/v1", "bucket"))
    saved = suite.update(with_pipeline(suite.resources(name_of(draft)), mutators=functions))
    assert saved["status"]["renderStatus"]["result"]["exitCode"] == 0
    assert saved["status"]["renderStatus"]["error"] == ""
    again = suite.resources(name_of(draft))
    return [yaml.safe_load(shown["spec"]["resources"]["bucket.yaml"]) for shown in (saved, again)]


def test_scenario_21_a_validator_that_fails_fails_the_update(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("git", porch_test)
    draft = suite.make("git", "test-fn-fails", "workspace", clone_of_git(test_blueprints_remote, "bucket/v1", "bucket"))
    before = suite.resources(name_of(draft))
    # The schema of StorageBucket is known to nobody here, as it is to upstream's pod.
    files = with_pipeline(suite.resources(name_of(draft)), validators=[function("kubeconform:v0.1.1")])

    with pytest.raises(Refused, match=RENDER_FAILED) as refused:
        suite.update(files)

    assert refused.value.code == 422
    assert "kubeconform" in str(refused.value)
    assert suite.resources(name_of(draft))["spec"] == before["spec"]


def test_scenario_26_what_does_not_render_is_not_saved(suite: UpstreamClient, porch_test: Remote) -> None:
    draft = _draft_to_fail(suite, porch_test, push=False)
    before = suite.resources(draft)

    with pytest.raises(Refused, match=f"{RENDER_FAILED}. Package NOT pushed to remote. Fix locally") as refused:
        suite.update(_failing(suite.resources(draft)))

    assert str(refused.value).startswith("Internal error occurred: ")
    assert suite.resources(draft) == before


def test_scenario_27_what_does_not_render_is_saved_as_it_came_where_the_revision_asks_for_it(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    draft = _draft_to_fail(suite, porch_test, push=True)

    with pytest.raises(Refused, match=f"{RENDER_FAILED}. Package pushed to remote despite render failure. Details: "):
        suite.update(_failing(suite.resources(draft)))

    saved = suite.resources(draft)
    assert saved["spec"]["resources"]["config-map.yaml"] == CONFIG_MAP


def test_scenario_28_what_the_first_mutators_made_is_saved_where_the_package_asks_for_it(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    draft = _draft_to_fail(suite, porch_test, push=True)
    files = _failing(suite.resources(draft))
    kptfile = yaml.safe_load(files["spec"]["resources"]["Kptfile"])
    kptfile["metadata"].setdefault("annotations", {})["kpt.dev/save-on-render-failure"] = "true"
    files["spec"]["resources"]["Kptfile"] = yaml.safe_dump(kptfile, sort_keys=False)

    with pytest.raises(Refused, match=f"{RENDER_FAILED}. Package pushed to remote despite render failure. Details: "):
        suite.update(files)

    saved = suite.resources(draft)
    assert annotations(saved, "config-map.yaml") == {"first": "ran"}
    assert annotations(saved, "Kptfile")["kpt.dev/save-on-render-failure"] == "true"


def _draft_to_fail(suite: UpstreamClient, remote: Remote, *, push: bool) -> str:
    suite.register("git", remote)
    draft = suite.make("git", "test-render-failure", "workspace")
    if push:
        draft["metadata"]["annotations"] = {"porch.kpt.dev/push-on-render-failure": "true"}
        suite.update(draft)
    return name_of(draft)


def _failing(files: Object) -> Object:
    """Add a file and a pipeline of which the second function fails."""
    files["spec"]["resources"]["config-map.yaml"] = CONFIG_MAP
    first, second = function("set-annotations:v0.1.4", first="ran"), function("starlark:v0.4.3", source=FAIL)
    return with_pipeline(files, mutators=[first, second])
