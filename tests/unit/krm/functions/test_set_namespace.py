from typing import Any

import pytest
from function_run import config_of, failure, inline_config, messages, resources_of, run_function, text_after

from krm.functions.runner import FunctionConfig

UP_TO_DATE = "all `depends-on` annotations are up-to-date. no `namespace` changed"


def _object(kind: str, version: str, namespace: str = "", rest: str = "", name: str = "x", **annotations: str) -> str:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n"
    if namespace:
        text += f"  namespace: {namespace}\n"
    if annotations:
        text += "  annotations:\n" + "".join(f'    {_KEYS[key]}: "{value}"\n' for key, value in annotations.items())
    return text + rest


_KEYS = {
    "local": "config.kubernetes.io/local-config",
    "origin": "internal.kpt.dev/upstream-identifier",
    "depends": "config.kubernetes.io/depends-on",
}
SUBJECTS = "subjects:\n- kind: ServiceAccount\n  name: a\n  namespace: old\n- kind: Group\n  name: g\n"
WEBHOOK = (
    "spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n      clientConfig:\n        service:\n"
    "          name: svc\n          namespace: old\n"
)
CRD = "CustomResourceDefinition", "apiextensions.k8s.io/v1"


def _after(text: str, image: str = "set-namespace", **config: str) -> str:
    return text_after(image, text, inline_config({"namespace": "new", **config}))


def _told(text: str, image: str = "set-namespace", **config: str) -> list[str]:
    return messages(run_function(image, resources_of(text), inline_config({"namespace": "new", **config})))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_object("Namespace", "v1", name="old"), id="namespace"),
        pytest.param(_object("Service", "v1", "old"), id="namespaced"),
        pytest.param(_object("Widget", "example.com/v1", "old"), id="custom"),
        pytest.param(_object(*CRD, rest=WEBHOOK), id="webhook"),
        pytest.param(
            _object(
                "APIService", "apiregistration.k8s.io/v1", rest="spec:\n  service:\n    name: s\n    namespace: old\n"
            ),
            id="api-service",
        ),
        pytest.param(_object("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", rest=SUBJECTS), id="subjects"),
    ],
)
def test_namespaces_are_replaced_wherever_they_are(text: str) -> None:
    for image in ("set-namespace", "set-namespace:v0.4.2", "set-namespace:v0.4.1"):
        assert _after(text, image) == text.replace("old", "new")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_object("ClusterRole", "rbac.authorization.k8s.io/v1", "old"), id="cluster-scoped"),
        pytest.param(_object("Widget", "example.com/v1"), id="custom-without"),
        pytest.param(_object("Service", "v1", "old", local="true"), id="local-config"),
        pytest.param(_object(*CRD, rest=WEBHOOK.replace("Webhook", "None")), id="webhook-that-is-not-used"),
        pytest.param(_object(*CRD, rest=WEBHOOK.replace("          name: svc\n", "")), id="service-without-name"),
        pytest.param(_object("APIService", "apiregistration.k8s.io/v1", rest="spec: {}\n"), id="local-api-service"),
    ],
)
def test_other_objects_stay(text: str) -> None:
    assert _after(text) == text
    assert _told(text) == ['all matching namespaces are already "new". no value changed', UP_TO_DATE]


def test_role_bindings_move_but_their_subjects_only_with_pinned_tags() -> None:
    text = _object("RoleBinding", "rbac.authorization.k8s.io/v1", "here", rest=SUBJECTS)

    assert _after(text) == text.replace("here", "new")
    assert _after(text, "set-namespace:v0.4.1") == text.replace("here", "new").replace("old", "new")


def test_objects_without_namespace_get_one_and_count_as_default() -> None:
    text = _object("Service", "v1")

    assert _after(text) == text + "  namespace: new\n"
    assert _told(text)[0] == 'namespace [default] updated to "new", 1 value(s) changed'


def test_old_values_are_told_sorted_and_once() -> None:
    text = "---\n".join(_object("Service", "v1", namespace, name=str(n)) for n, namespace in enumerate("baab"))

    assert _told(text) == ['namespace [a b] updated to "new", 4 value(s) changed', UP_TO_DATE]


def test_package_context_is_a_configuration() -> None:
    config = config_of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kptfile.kpt.dev}\ndata: {name: new}\n")
    text = _object("Service", "v1", "old")

    assert text_after("set-namespace", text, config) == text.replace("old", "new")


SET = "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\nmetadata: {name: c}\n"


def test_kind_of_its_own_is_a_configuration() -> None:
    text = _object("Service", "v1", "old") + "---\n" + _object("Service", "v1", "other", name="y")

    after = text_after("set-namespace", text, config_of(SET + "namespace: new\nnamespaceMatcher: old\n"))

    assert after == text.replace("old", "new")


def test_matcher_reaches_current_namespaces_and_upstream_ones() -> None:
    text = "---\n".join(
        [
            _object("Service", "v1", "old", name="a"),
            _object("Service", "v1", "moved", name="b", origin="|Service|old|b"),
            _object("Service", "v1", "moved", name="c", origin="|Service|else|c"),
            _object("Namespace", "v1", name="old", origin="|Namespace|~C|old"),
            _object("Service", "v1", name="d"),
        ]
    )

    after = _after(text, namespaceMatcher="old")

    assert after == text.replace("namespace: old", "namespace: new").replace("namespace: moved", "namespace: new", 1)
    told = _told(text, namespaceMatcher="old")
    assert told[0].endswith("has matching origin old")
    assert told[1] == 'namespace [moved old] updated to "new", 2 value(s) changed'


DEPENDENCY = "apps/namespaces/old/Deployment/db"
DEPENDENT = _object(
    "Deployment", "apps/v1", "old", name="app", depends=f"{DEPENDENCY},apps/namespaces/old/Deployment/out"
)


def test_dependencies_follow_what_is_in_the_package() -> None:
    text = f"{DEPENDENT}---\n{_object('Deployment', 'apps/v1', 'old', name='db')}"

    for image in ("set-namespace", "set-namespace:v0.4.1", "set-namespace:v0.3.4"):
        assert _after(text, image) == text.replace("namespace: old", "namespace: new").replace(
            DEPENDENCY, DEPENDENCY.replace("old", "new")
        )
    assert _told(text)[1] == '`depends-on` annotation namespace [old] updated to "new", 1 value(s) changed'


def test_dependency_outside_the_matcher_stays() -> None:
    text = f"{DEPENDENT}---\n{_object('Deployment', 'apps/v1', 'old', name='db')}"

    assert _after(text, namespaceMatcher="else") == text


EXPECT = "expect `ConfigMap.v1` or `SetNamespace.v1alpha1.fn.kpt.dev`"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "FunctionConfig is missing. " + EXPECT.replace("expect", "Expect")),
        (inline_config({"x": "y"}), "`data.namespace` should not be empty"),
        (config_of(SET), "`namespace` should not be empty"),
        (
            config_of(SET.replace("SetNamespace", "Other")),
            f"unknown functionConfig Kind=Other ApiVersion=fn.kpt.dev/v1alpha1, {EXPECT}",
        ),
    ],
)
@pytest.mark.parametrize(
    ("tag", "exit_code"), [("v0.4.2", 0), ("unstable", 0), ("v0.4.5", 1), ("latest", 1), ("v0.3.4", 0)]
)
def test_bad_configurations(config: FunctionConfig | None, message: str, tag: str, exit_code: int) -> None:
    result = run_function(f"set-namespace:{tag}", resources_of(_object("Service", "v1")), config)

    assert (result.exit_code, messages(result)) == (exit_code, [message])
    assert result.results[0]["severity"] == "error"
    assert result.results[0]["file"] == ({"path": "fn-config.yaml"} if config and config.path else {"index": -1})


def test_pinned_tags_fail_for_want_of_a_configuration() -> None:
    results, _ = failure("set-namespace:v0.4.1", _object("Service", "v1"))

    assert results[0]["message"] == "FunctionConfig is missing. Expect `ConfigMap` or `SetNamespace`"


def test_pinned_tags_tell_one_result() -> None:
    text = "---\n".join(_object("Service", "v1", namespace, name=f"{namespace}1") for namespace in ("b", "a", ""))

    assert _told(text, "set-namespace:v0.4.1") == ['namespace "","a","b" updated to "new", 3 value(s) changed']
    assert _told(_object("Service", "v1", "new"), "set-namespace:v0.4.1") == [
        'all namespaces are already "new". no value changed'
    ]


def test_pinned_tags_report_objects_that_became_one() -> None:
    text = _object("Service", "v1", "a") + "---\n" + _object("Service", "v1", "b")
    result = run_function("set-namespace:v0.4.1", resources_of(text), inline_config({"namespace": "new"}))

    assert result.exit_code == 0
    assert [item["severity"] for item in result.results] == ["error"]


@pytest.mark.parametrize("tag", ["v0.1", "v0.1.4", "v0.2.0", "v0.4.1"])
def test_before_and_after_v0_3_whatever_has_no_namespace_gets_one(tag: str) -> None:
    items = resources_of(_object("Deployment", "apps/v1"))

    result = run_function(f"set-namespace:{tag}", items, inline_config({"namespace": "new"}))

    assert result.exit_code == 0
    assert [item.data["metadata"]["namespace"] for item in result.items] == ["new"]
    assert run_function(f"set-namespace:{tag}", items, inline_config({})).exit_code == 1


FIRST = "set-namespace:v0.3.4"


@pytest.mark.parametrize(
    ("text", "config", "message"),
    [
        pytest.param(
            _object("Namespace", "v1", name="old") + "---\n" + _object("Service", "v1", "old"),
            {},
            'namespace "old" updated to "new", 2 values changed',
            id="namespace-object",
        ),
        pytest.param(
            _object("Service", "v1", "old"), {}, 'namespace "old" updated to "new", 1 values changed', id="only-one"
        ),
        pytest.param(
            _object("Service", "v1", "a") + "---\n" + _object("Service", "v1", "b"),
            {"namespaceMatcher": "b"},
            'namespace "b" updated to "new", 1 values changed',
            id="matcher",
        ),
        pytest.param(
            _object("Service", "v1", "a") + "---\n" + _object("Service", "v1", "b"),
            {},
            "all input namespace-scoped resources should be under the same namespace but found different namespaces: "
            '"a,b" ',
            id="several",
        ),
        pytest.param(
            _object("Namespace", "v1", name="a") + "---\n" + _object("Namespace", "v1", name="b"),
            {},
            "cannot accept more than one Namespace objects from the input resources, found map[a:1 b:1]",
            id="several-namespace-objects",
        ),
    ],
)
def test_first_version_replaces_the_one_old_namespace(text: str, config: dict[str, str], message: str) -> None:
    result = run_function(FIRST, resources_of(text), inline_config({"namespace": "new", **config}))

    assert (result.exit_code, messages(result)) == (0, [message])


def test_first_version_needs_a_namespace_to_replace() -> None:
    told = _told(_object("Service", "v1"), FIRST)

    assert told[0].startswith("could not find any namespace fields to update. ")


def test_resource_that_is_excused_from_having_metadata_harms_nobody() -> None:
    items: list[Any] = resources_of("apiVersion: v1\nkind: Namespace\n", "kustomization.yaml")

    assert run_function("set-namespace", items, inline_config({"namespace": "new"})).exit_code == 0
