"""What the tests of ``apply-replacements`` work on."""

from function_run import config_of, failure, text_after

from krm.functions.runner import FunctionConfig

LENIENT = "apply-replacements:v0.1.1"
STRICT = "apply-replacements:latest"
BOTH = [LENIENT, STRICT]

SOURCE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: context
data:
  name: prod
  port: 8080
  quoted: "8080"
  octal: 0777
  joined: a-b-c
  word: abc
  empty: {}
  list: [x, z]
"""
TARGET = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-front # the name
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: nginx
        image: nginx:1.0 # pinned
        ports:
        - containerPort: 80
      - name: nginx-sidecar
        image: side:1.0
  strategy: "80"
  annotations:
    a.b/c: old
"""


def replacement(source: str, target: str) -> FunctionConfig:
    return config_of(f"""\
apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata: {{name: r}}
replacements:
- source: {source}
  targets:
  - {target}
""")


def replaced_text(image: str, source_path: str, path: str, *, source_options: str = "{}", options: str = "{}") -> str:
    source = f"{{kind: ConfigMap, name: context, fieldPath: '{source_path}', options: {source_options}}}"
    target = f"{{select: {{kind: Deployment}}, fieldPaths: ['{path}'], options: {options}}}"
    text = text_after(image, SOURCE + "---\n" + TARGET, replacement(source, target))
    assert text.startswith(SOURCE)
    return text.removeprefix(SOURCE + "---\n")


def changed_lines(text: str) -> list[str]:
    """The lines that are not the target's own."""
    old = TARGET.splitlines()
    return [line for line in text.splitlines() if line not in old]


def replacement_failure(image: str, source: str, target: str) -> str:
    results, stderr = failure(image, SOURCE + "---\n" + TARGET, replacement(source, target))
    assert stderr == "failed to evaluate function: error: function failure"
    assert [result["severity"] for result in results] == ["error"]
    return str(results[0]["message"])


CONTEXT = "{kind: ConfigMap, name: context, fieldPath: data.name}"
CONVERT = "unable to convert functionConfig to replacements:\n"
DEPLOYMENT = "select: {kind: Deployment}, fieldPaths: "


PODS = """\
apiVersion: v1
kind: Pod
metadata:
  name: a
  labels: {app: one}
spec: {x: old}
---
apiVersion: v1
kind: Pod
metadata:
  name: b
  namespace: default
  annotations: {team: red}
spec: {x: old}
---
apiVersion: v1
kind: Pod
metadata:
  name: c
  namespace: other
  annotations:
    internal.config.kubernetes.io/previousNames: first
    internal.config.kubernetes.io/previousNamespaces: other
    internal.config.kubernetes.io/previousKinds: Pod
spec: {x: old}
"""
