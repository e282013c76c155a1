"""``ensure-name-substring`` and ``set-name-prefix``: names, and the references that follow them."""

from typing import Any

import pytest
from function_run import config_of, failure, inline_config, messages, resources_of, run_function, text_after

from krm.functions.catalog.name_references import GROUPS, NAME_REFERENCES

IMAGE = "ensure-name-substring:v0.2.0"

PACKAGE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings # kept
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata:
  name: keys
---
apiVersion: v1
kind: Service
metadata:
  name: web
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: runner
imagePullSecrets:
- name: keys
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: disk
spec:
  storageClassName: fast
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: fast
parameters:
  csi.storage.k8s.io/node-stage-secret-name: keys
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
  annotations:
    config.kubernetes.io/depends-on: /namespaces/default/ConfigMap/settings, other.io/Thing/x,storage.k8s.io/StorageClass/fast
spec:
  serviceName: web
  template:
    spec:
      serviceAccountName: runner
      imagePullSecrets:
      - name: keys
      initContainers:
      - name: init
        envFrom:
        - secretRef: {name: keys}
      containers:
      - name: main
        env:
        - name: A
          valueFrom:
            configMapKeyRef: {name: settings, key: a}
        - name: B
          valueFrom:
            configMapKeyRef: {name: elsewhere, key: a}
      volumes:
      - name: settings
        configMap: {name: settings}
      - name: all
        projected:
          sources:
          - secret: {name: keys}
      - name: disk
        persistentVolumeClaim: {claimName: disk}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: scaler
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: entry
  annotations:
    nginx.ingress.kubernetes.io/auth-tls-secret: default/keys
spec:
  tls:
  - secretName: keys
  rules:
  - http:
      paths:
      - backend: {service: {name: web, port: {number: 80}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: reader
rules:
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [settings, keys]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: bind
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: runner, namespace: default}
- {kind: ServiceAccount, name: runner, namespace: other}
- {kind: User, name: runner}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: check
webhooks:
- clientConfig:
    service: {name: web, namespace: default}
---
apiVersion: v1
kind: Namespace
metadata:
  name: space
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.x.io
---
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: pkg
"""


def _by_kind(text: str) -> dict[str, Any]:
    return {item.data["kind"]: item.data for item in resources_of(text)}


def test_references_follow_the_objects_of_the_package() -> None:
    after = _by_kind(text_after(IMAGE, PACKAGE, inline_config({"prepend": "x-"})))

    pod = after["StatefulSet"]["spec"]["template"]["spec"]
    assert after["StatefulSet"]["spec"]["serviceName"] == "x-web"
    assert pod["serviceAccountName"] == "x-runner"
    assert pod["imagePullSecrets"] == [{"name": "x-keys"}]
    assert pod["initContainers"][0]["envFrom"] == [{"secretRef": {"name": "x-keys"}}]
    assert [env["valueFrom"]["configMapKeyRef"]["name"] for env in pod["containers"][0]["env"]] == [
        "x-settings",
        "elsewhere",
    ]
    assert [volume["name"] for volume in pod["volumes"]] == ["settings", "all", "disk"]
    assert pod["volumes"][0]["configMap"] == {"name": "x-settings"}
    assert pod["volumes"][1]["projected"] == {"sources": [{"secret": {"name": "x-keys"}}]}
    assert pod["volumes"][2]["persistentVolumeClaim"] == {"claimName": "x-disk"}
    assert after["ServiceAccount"]["imagePullSecrets"] == [{"name": "x-keys"}]
    assert after["PersistentVolumeClaim"]["spec"]["storageClassName"] == "x-fast"
    assert after["StorageClass"]["parameters"] == {"csi.storage.k8s.io/node-stage-secret-name": "x-keys"}
    assert after["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "x-db"
    assert (
        after["Ingress"]["metadata"]["annotations"]["nginx.ingress.kubernetes.io/auth-tls-secret"] == "default/x-keys"
    )
    assert after["Ingress"]["spec"]["tls"] == [{"secretName": "x-keys"}]
    assert after["Ingress"]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] == "x-web"
    assert after["RoleBinding"]["roleRef"]["name"] == "x-reader"
    assert [subject["name"] for subject in after["RoleBinding"]["subjects"]] == ["x-runner", "runner", "runner"]
    assert after["ValidatingWebhookConfiguration"]["webhooks"][0]["clientConfig"]["service"]["name"] == "x-web"


def test_a_rule_follows_only_the_kinds_it_is_about() -> None:
    after = _by_kind(text_after(IMAGE, PACKAGE, inline_config({"prepend": "x-"})))

    assert after["Role"]["rules"][0]["resourceNames"] == ["x-settings", "keys"]


def test_dependencies_follow_when_they_are_in_the_package() -> None:
    after = _by_kind(text_after(IMAGE, PACKAGE, inline_config({"prepend": "x-"})))

    assert after["StatefulSet"]["metadata"]["annotations"]["config.kubernetes.io/depends-on"] == (
        "/namespaces/default/ConfigMap/x-settings, other.io/Thing/x,storage.k8s.io/StorageClass/x-fast"
    )


def test_names_that_others_own_stay() -> None:
    after = _by_kind(text_after(IMAGE, PACKAGE, inline_config({"prepend": "x-"})))

    names = [after[kind]["metadata"]["name"] for kind in ("Namespace", "CustomResourceDefinition", "Kptfile")]
    assert names == ["space", "things.x.io", "pkg"]


def test_objects_of_one_name_in_several_namespaces_are_told_apart() -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: {}}}\n---\n"
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: {}}}\n"
        "spec: {{volumes: [{{name: v, configMap: {{name: c}}}}]}}\n"
    )

    after = resources_of(text_after(IMAGE, config.format("a") + pod.format("b"), inline_config({"prepend": "x-"})))
    both = text_after(
        IMAGE, config.format("a") + config.format("b") + pod.format("b"), inline_config({"prepend": "x-"})
    )

    assert after[1].data["spec"]["volumes"][0]["configMap"]["name"] == "c"
    assert resources_of(both)[2].data["spec"]["volumes"][0]["configMap"]["name"] == "x-c"


def test_only_names_change_and_a_second_run_changes_nothing() -> None:
    config = inline_config({"append": "-x"})

    once = text_after(IMAGE, PACKAGE, config)

    assert "  name: settings-x # kept\ndata: {a: b}\n" in once
    assert text_after(IMAGE, once, config) == once
    changed = [line for line in once.splitlines() if line not in PACKAGE.splitlines()]
    assert all("-x" in line for line in changed)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ("substring: web", "web"),
        ("substring: x-", "x-web"),
        ("substring: x-\neditMode: prepend", "x-web"),
        ("substring: -x\neditMode: append", "web-x"),
    ],
)
def test_the_own_kind_of_configuration_has_a_mode(fields: str, name: str) -> None:
    config = config_of(f"apiVersion: fn.kpt.dev/v1alpha1\nkind: EnsureNameSubstring\nmetadata: {{name: c}}\n{fields}\n")
    service = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"

    assert text_after(IMAGE, service, config) == service.replace("name: web", f"name: {name}")


@pytest.mark.parametrize("key", ["additionalNameFields", "fieldSpecs"])
def test_additional_fields_are_names_too(key: str) -> None:
    config = config_of(f"""\
apiVersion: fn.kpt.dev/v1alpha1
kind: EnsureNameSubstring
metadata: {{name: c}}
substring: x-
{key}:
- {{group: dev.example.com, version: v1, kind: MyResource, path: spec/names}}
- {{kind: MyResource, path: 'spec/list[]/name'}}
""")
    text = """\
apiVersion: dev.example.com/v1
kind: MyResource
metadata:
  name: x-it
spec:
  names: a
  list:
  - name: b
  - name: x-c
"""

    assert text_after(IMAGE, text, config) == text.replace(": a", ": x-a").replace(": b", ": x-b")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "only 1 entry is allowed in the ConfigMap, but got: 0"),
        ({"prepend": "a", "append": "b"}, "only 1 entry is allowed in the ConfigMap, but got: 2"),
        ({"insert": "a"}, "unknown editMode: insert, only prepend and append are allowed"),
        ({"prepend": ""}, "substring must not be empty"),
    ],
)
def test_a_configuration_that_says_nothing_clear_is_refused(data: dict[str, str], message: str) -> None:
    results, stderr = failure(IMAGE, PACKAGE, inline_config(data))

    assert results == [{"message": message, "severity": "error"}]
    assert stderr == f"[error]: {message}"


def test_two_resources_with_one_identity_are_refused() -> None:
    text = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"

    results, _ = failure(IMAGE, f"{text}---\n{text}", inline_config({"prepend": "x-"}))

    expected = "may not add resource with an already registered id: Service.v1.[noGrp]/web.[noNs]"
    assert [result["message"] for result in results] == [expected]


def test_a_field_that_is_shaped_otherwise_is_left_alone() -> None:
    text = (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\n---\n"
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\nspec:\n  template:\n    spec: none\n"
    )

    after = text_after(IMAGE, text, inline_config({"prepend": "x-"}))

    assert after == text.replace("name: ", "name: x-")


def test_every_referred_kind_of_the_table_has_a_group() -> None:
    referred = {reference.kind for references in NAME_REFERENCES.values() for reference in references}

    assert referred == set(GROUPS)


PREFIXED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: packagename
---
apiVersion: v1
kind: Service
metadata:
  name: packagename-web
---
apiVersion: v1
kind: Pod
metadata:
  name: packagenames
spec:
  volumes:
  - name: c
    configMap: {name: packagename}
---
apiVersion: v1
kind: Secret
metadata:
  name: packagename-local
  annotations: {config.kubernetes.io/local-config: "true"}
---
apiVersion: kpt.dev/v1alpha1
kind: ResourceGroup
metadata:
  name: packagename-inventory
"""


@pytest.mark.parametrize(
    "config",
    [
        inline_config({"prefix": "shop"}),
        config_of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kptfile.kpt.dev}\ndata: {name: shop}\n"),
    ],
    ids=["prefix", "package context"],
)
def test_the_placeholder_becomes_the_package_s_name(config: Any) -> None:
    after = text_after("set-name-prefix", PREFIXED, config)

    names = [item.data["metadata"]["name"] for item in resources_of(after)]
    assert names == ["shop", "shop-web", "packagenames", "packagename-local", "packagename-inventory"]
    assert "configMap: {name: shop}" in after


def test_another_placeholder_can_be_given() -> None:
    after = text_after("set-name-prefix", PREFIXED, inline_config({"prefix": "b", "oldPrefix": "packagename-web"}))

    assert after == PREFIXED.replace("name: packagename-web", "name: b")


@pytest.mark.parametrize("config", [None, inline_config({}), inline_config({"prefix": ""})], ids=str)
def test_a_prefix_is_required(config: Any) -> None:
    result = run_function("set-name-prefix", resources_of(PREFIXED), config)

    assert result.exit_code == 1
    assert messages(result) == ["`data.prefix` should not be empty"]
