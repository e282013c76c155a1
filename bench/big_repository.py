"""``big_repository.py PATH PACKAGES REVISIONS``: a bare repository with P packages of R published revisions each.

Each revision is one commit on main and one tag ``<package>/v<n>``, with a Kptfile and two files more; written by
``git fast-import``. Stands in for the acceptance program of the same purpose.
"""

import subprocess
import sys
from collections.abc import Iterator

EPOCH = 1_700_000_000
"""Seconds; the first commit's time, so that the same arguments give the same repository."""


def package_files(package: str, revision: int) -> dict[str, str]:
    """Return the files of one revision."""
    return {
        "Kptfile": (
            f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {package}\n  annotations:\n"
            f'    config.kubernetes.io/local-config: "true"\ninfo:\n  description: {package}, revision {revision}\n'
        ),
        "deployment.yaml": (
            f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {package}\nspec:\n  replicas: {revision}\n"
            f"  selector:\n    matchLabels: {{app: {package}}}\n  template:\n    metadata:\n      labels: {{app: {package}}}\n"
            f"    spec:\n      containers:\n      - name: main\n        image: registry.example/{package}:v{revision}\n"
        ),
        "service.yaml": (
            f"apiVersion: v1\nkind: Service\nmetadata:\n  name: {package}\nspec:\n"
            f"  selector: {{app: {package}}}\n  ports: [{{port: 80}}]\n"
        ),
    }


def commands(packages: int, revisions: int) -> Iterator[bytes]:
    """Yield the fast-import stream."""
    mark = 0
    for revision in range(1, revisions + 1):
        for number in range(packages):
            mark += 1
            package = f"pkg{number:05d}"
            yield f"commit refs/heads/main\nmark :{mark}\n".encode()
            yield f"committer porch <porch@example.com> {EPOCH + mark} +0000\n".encode()
            yield _data(f"Approve {package}/v{revision}")
            if mark > 1:
                yield f"from :{mark - 1}\n".encode()
            for path, text in package_files(package, revision).items():
                yield f"M 100644 inline {package}/{path}\n".encode() + _data(text)
            yield f"reset refs/tags/{package}/v{revision}\nfrom :{mark}\n\n".encode()


def _data(text: str) -> bytes:
    encoded = text.encode()
    return b"data %d\n%b\n" % (len(encoded), encoded)


def main() -> None:
    path, packages, revisions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", path], check=True)
    subprocess.run(["git", "-C", path, "config", "http.receivepack", "true"], check=True)
    stream = b"".join(commands(packages, revisions))
    subprocess.run(["git", "-C", path, "fast-import", "--quiet"], input=stream, check=True)
    subprocess.run(["git", "-C", path, "pack-refs", "--all"], check=True)


if __name__ == "__main__":
    main()
