"""Packages of many resources, made from a number: what rendering and merging are measured on."""

from krm.package.contents import File

LABEL_STEPS = 5
_KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: large
pipeline:
  mutators:
"""
_STEP = """    - image: ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0
      configMap:
        label-{step}: value-{step}
"""
_SELECTOR = """      selectors:
        - kind: Deployment
"""
_DEPLOYMENT = """# What serves part {number}.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: server-{number}
  namespace: default
  labels:
    app: server-{number}
spec:
  replicas: 3 # as many as there are zones
  selector:
    matchLabels:
      app: server-{number}
  template:
    metadata:
      labels:
        app: server-{number}
    spec:
      containers:
        - name: server
          image: registry.example/server:v1.2.{number}
          args: ["--port", "8080"]
          ports:
            - containerPort: 8080
              name: http
          env:
            - name: PART
              value: "{number}"
          resources:
            limits:
              memory: 128Mi
            requests:
              cpu: 100m
              memory: 64Mi
          volumeMounts:
            - name: settings
              mountPath: /etc/server
      volumes:
        - name: settings
          configMap:
            name: settings-{number}
"""
_CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata: # kpt-merge: default/settings-{number}
  name: settings-{number}
  namespace: default
data:
  # Read at start.
  part: "{number}"
  mode: {mode}
  owner: {owner}
"""


def deployments(count: int, *, selectors: bool = False, steps: int = LABEL_STEPS) -> dict[str, File]:
    """Return a package of ``count`` Deployments, a file each, that its pipeline labels ``steps`` times."""
    pipeline = "".join(_STEP.format(step=step) + (_SELECTOR if selectors else "") for step in range(steps))
    files = {f"deployment-{number:05}.yaml": _DEPLOYMENT.format(number=number) for number in range(count)}
    return _package({"Kptfile": _KPTFILE + pipeline, **files})


def config_maps(count: int, *, mode: str = "plain", owner: str = "nobody") -> dict[str, File]:
    """Return a package of ``count`` ConfigMaps in one file."""
    texts = [_CONFIG_MAP.format(number=number, mode=mode, owner=owner) for number in range(count)]
    return _package({"Kptfile": _KPTFILE.partition("pipeline:")[0], "settings.yaml": "---\n".join(texts)})


def _package(files: dict[str, str]) -> dict[str, File]:
    return {path: File(text.encode()) for path, text in files.items()}
