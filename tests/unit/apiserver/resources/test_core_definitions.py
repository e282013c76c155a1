"""Rules of the core kinds and of Repository that need more than a schema."""

import base64
import copy
from typing import Any

import pytest

from apiserver.resources.config import repository_definition
from apiserver.resources.core import (
    MAX_DATA_BYTES,
    config_map_definition,
    namespace_definition,
    secret_definition,
)
from apiserver.resources.event_kinds import event_definition

Json = dict[str, Any]


def causes(definition: Any, new: Json, old: Json | None = None) -> list[str]:
    if definition.prepare:
        definition.prepare(new, old)
    return [cause.field for cause in definition.validate(new, old)]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("config_map", "fields"),
    [
        pytest.param({"data": {"a.b_c-D": ""}}, [], id="good-key"),
        pytest.param({"data": {"": "x"}}, ["data[]"], id="empty-key"),
        pytest.param({"data": {"..": "x"}}, ["data[..]"], id="dots"),
        pytest.param({"data": {"a/b": "x"}}, ["data[a/b]"], id="slash"),
        pytest.param({"data": {"k" * 254: "x"}}, [f"data[{'k' * 253}]"], id="long-key"),
        pytest.param({"data": {"a": "x"}, "binaryData": {"a": "/w=="}}, ["data[a]"], id="key-twice"),
        pytest.param({"data": {"a": "x" * MAX_DATA_BYTES}}, [], id="largest"),
        pytest.param({"data": {"a": "x" * MAX_DATA_BYTES, "b": "y"}}, ["[]"], id="too-large"),
    ],
)
def test_config_map_keys_and_sizes_are_checked(config_map: Json, fields: list[str]) -> None:
    assert causes(config_map_definition(), config_map) == fields


def test_an_immutable_config_map_keeps_data_and_stays_immutable() -> None:
    old = {"data": {"a": "1"}, "immutable": True}

    assert causes(config_map_definition(), {"data": {"a": "1"}, "immutable": True}, old) == []
    assert causes(config_map_definition(), {"data": {"a": "2"}, "immutable": True}, old) == ["data"]
    assert causes(config_map_definition(), {"data": {"a": "1"}}, old) == ["immutable"]


@pytest.mark.parametrize(
    ("type_", "data", "fields"),
    [
        pytest.param("Opaque", {}, [], id="opaque"),
        pytest.param("kubernetes.io/tls", {"tls.crt": ""}, ["data[tls.key]"], id="tls-without-key"),
        pytest.param("kubernetes.io/ssh-auth", {}, ["data[ssh-privatekey]"], id="ssh"),
        pytest.param("kubernetes.io/basic-auth", {"password": ""}, [], id="password-alone"),
        pytest.param("kubernetes.io/basic-auth", {}, ["data[username]", "data[password]"], id="neither"),
    ],
)
def test_secret_types_require_their_keys(type_: str, data: Json, fields: list[str]) -> None:
    assert causes(secret_definition(), {"type": type_, "data": data}) == fields


def test_string_data_is_folded_over_data_and_the_type_is_kept() -> None:
    secret: Json = {"data": {"a": encoded("old"), "b": encoded("b")}, "stringData": {"a": "new"}}

    secret_definition().prepare(secret, {"type": "example.com/x"})  # type: ignore[misc]

    assert secret == {"data": {"a": encoded("new"), "b": encoded("b")}, "type": "example.com/x"}


def test_the_type_of_a_secret_cannot_change() -> None:
    assert causes(secret_definition(), {"type": "Opaque"}, {"type": "example.com/x"}) == ["type"]


def test_a_namespace_begins_active_and_held_and_only_finalize_lets_it_go() -> None:
    definition = namespace_definition()
    namespace: Json = {"metadata": {"name": "team"}, "spec": {"finalizers": ["own"]}}
    assert definition.prepare is not None

    definition.prepare(namespace, None)
    changed: Json = {"metadata": {"name": "team"}, "spec": {}}
    definition.prepare(changed, namespace)

    assert namespace["spec"] == {"finalizers": ["own", "kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert changed["spec"] == {"finalizers": ["own", "kubernetes"]}


@pytest.mark.parametrize(
    ("namespace", "involved", "fields"),
    [
        pytest.param("team", "team", [], id="same"),
        pytest.param("default", None, [], id="cluster-scoped"),
        pytest.param("team", None, ["involvedObject.namespace"], id="cluster-scoped-elsewhere"),
        pytest.param("team", "other", ["involvedObject.namespace"], id="other"),
    ],
)
def test_an_event_lies_in_the_namespace_of_its_object(namespace: str, involved: str | None, fields: list[str]) -> None:
    event: Json = {"metadata": {"namespace": namespace}, "involvedObject": {"namespace": involved}}

    assert causes(event_definition(), event) == fields


def repository(**spec: Any) -> Json:
    return {"metadata": {"name": "r"}, "spec": spec}


def repository_causes(new: Json, old: Json | None = None) -> list[str]:
    """Return the fields at fault by the rules of Repository's definition and by those beside it."""
    definition = repository_definition()
    assert definition.prepare is not None
    assert definition.validate is not None
    definition.prepare(new, old)
    broken = definition.compiled.validate(new, old) or definition.validate(new, old)
    return [cause.field for cause in broken]


GIT: Json = {"repo": "https://git.example/r", "branch": "main", "directory": "/"}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({"type": "git", "git": GIT}, [], id="git"),
        pytest.param({"type": "oci", "oci": {"registry": "r"}}, [], id="oci"),
        pytest.param({"git": GIT}, [], id="type-follows"),
        pytest.param({}, ["spec.type"], id="no-type"),
        pytest.param({"type": "git"}, ["spec.git"], id="git-without-address"),
        pytest.param({"type": "git", "git": {**GIT, "branch": "a b"}}, ["spec.git.branch"], id="no-branch-of-git"),
        pytest.param({"type": "git", "git": {**GIT, "directory": "/a/b/"}}, [], id="directory"),
        pytest.param(
            {"type": "git", "git": {**GIT, "directory": "../b"}}, ["spec.git.directory"], id="parent-directory"
        ),
        pytest.param({"type": "git", "git": {**GIT, "directory": "a//b"}}, ["spec.git.directory"], id="empty-segment"),
        pytest.param({"type": "git", "git": GIT, "content": "Function"}, ["spec.content"], id="content"),
        pytest.param({"type": "git", "git": GIT, "sync": {"schedule": "*/5 * * * *"}}, [], id="cron"),
        pytest.param({"type": "git", "git": GIT, "sync": {"schedule": "@every 5m"}}, [], id="macro"),
        pytest.param({"type": "git", "git": GIT, "sync": {"schedule": "* * *"}}, ["spec.sync.schedule"], id="no-cron"),
    ],
)
def test_repositories_say_what_they_are(spec: Json, fields: list[str]) -> None:
    assert repository_causes(repository(**spec)) == fields


@pytest.mark.parametrize("name", ["A", "a.b", "-a", "a" * 64, "a_b"])
def test_a_repository_name_is_a_dns_label(name: str) -> None:
    new = {"metadata": {"name": name}, "spec": {"type": "git", "git": GIT}}

    assert repository_causes(new) == ["<nil>"], "a rule on the whole object names no field"


@pytest.mark.parametrize("field", ["repo", "branch", "directory"])
def test_what_a_repository_points_at_cannot_change_or_go(field: str) -> None:
    old = repository(type="git", git=GIT)
    changed = repository(type="git", git={**GIT, field: "other"})
    removed = repository(type="git", git={name: value for name, value in GIT.items() if name != field})

    assert repository_causes(changed, old) == [f"spec.git.{field}"]
    assert repository_causes(removed, old)[0] == f"spec.git.{field}"


def test_a_directory_may_be_set_where_none_was() -> None:
    old = repository(type="git", git={"repo": "r"})

    assert repository_causes(repository(type="git", git={"repo": "r", "directory": "/x"}), old) == []


def test_a_directory_that_was_stored_before_it_was_checked_stays_writable_and_a_new_one_is_checked() -> None:
    stored: Json = {"metadata": {"name": "r"}, "spec": {"type": "git", "git": {**GIT, "directory": "../b"}}}
    without: Json = {"metadata": {"name": "r"}, "spec": {"type": "git", "git": {"repo": GIT["repo"]}}}

    assert repository_causes(copy.deepcopy(stored), copy.deepcopy(stored)) == []
    assert repository_causes(copy.deepcopy(stored), without) == ["spec.git.directory"]
