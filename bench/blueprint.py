"""The package that is fanned out in measurements: three small files and one function."""

from controllers_run import ok
from testbed import PorchClient, RemoteServer, remotes

PACKAGE = "app"
KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app
pipeline:
  mutators:
  - image: gcr.io/kpt-fn/set-labels:v0.2.0
    configMap:
      app: app
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  replicas: {replicas}
  template:
    spec:
      containers:
      - name: app
        image: app:v1
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: app\nspec:\n  ports:\n  - port: 80\n"


def make_remote(git: RemoteServer, remote: str) -> None:
    """Make a remote with the first published revision."""
    path = remotes.empty_remote(git.path(remote))
    files = {"Kptfile": KPTFILE, "deployment.yaml": DEPLOYMENT.format(replicas=1), "service.yaml": SERVICE}
    remotes.commit_files(path, {f"{PACKAGE}/{name}": text for name, text in files.items()}, "v1", tag=f"{PACKAGE}/v1")


def propose_next(porch: PorchClient, repository: str) -> str:
    """Propose a second revision with one changed line; return its name."""
    name = f"{repository}.{PACKAGE}.v2"
    task = {"type": "edit", "edit": {"sourceRef": {"name": f"{repository}.{PACKAGE}.v1"}}}
    ok(porch.create_revision(repository, PACKAGE, "v2", tasks=[task]))
    ok(porch.save(name, {"deployment.yaml": DEPLOYMENT.format(replicas=3)}))
    ok(porch.propose(name))
    return name
