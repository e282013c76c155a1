"""Writes the manifests in ``deploy/`` for those who have no Helm: ``make manifests``.

Each comes from the chart with a file of values. With ``--check`` nothing is rendered: each file names the digest of what it was
made from, and the exit code says whether that is what is there now. So the check needs no Helm.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from krm.generated_files import write_or_check

CHART: Final = Path("charts/porch")
HELM: Final = Path(".build/helm")
COMMAND: Final = "make manifests"
NAMESPACE: Final = "porch-system"
KUBERNETES: Final = "1.34.2"
"""Which version Helm shall render for; nothing in the chart depends on it."""
OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "porch": (),
    "porch-small": (),
    "porch-approval": ("--show-only", "templates/approval.yaml"),
}
"""Name of a file of ``deploy`` and of its values → further options of Helm."""
HELMS_OWN: Final = re.compile(r"^ +(app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n", re.MULTILINE)
"""Labels that would tell Helm that a release made the object."""
SECONDS: Final = 60


def values(name: str) -> Path:
    """Return the file of values of a manifest."""
    return Path(f"deploy/values/{name}.yaml")


def manifest(name: str) -> Path:
    """Return the file that is written."""
    return Path(f"deploy/{name}.yaml")


def digest(name: str) -> str:
    """Return the digest of everything that a manifest is made from. The definitions of kinds are not in it: they are applied as files."""
    inputs = [CHART / "Chart.yaml", CHART / "values.yaml", *sorted((CHART / "templates").rglob("*.*")), values(name)]
    hashed = hashlib.sha256(" ".join(OPTIONS[name]).encode())
    for path in inputs:
        hashed.update(f"\n{path}\n".encode() + path.read_bytes())
    return hashed.hexdigest()


def render(name: str, helm: Path = HELM) -> bytes:
    """Return a manifest's content.

    Raises:
        subprocess.CalledProcessError: Helm refuses the chart; it said why on stderr.
    """
    command = [
        str(helm),
        "template",
        "porch",
        str(CHART),
        "--namespace",
        NAMESPACE,
        "--no-hooks",
        "--kube-version",
        KUBERNETES,
    ]
    arguments = [*command, "--values", str(values(name)), *OPTIONS[name]]
    rendered = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True).stdout
    head = f"# Written by {COMMAND} from {CHART} with {values(name)}.\n# Inputs: sha256:{digest(name)}\n"
    return (head + HELMS_OWN.sub("", rendered)).encode()


def is_fresh(name: str) -> bool:
    """Tell whether a manifest was made from what is there now."""
    path = manifest(name)
    return path.exists() and f"\n# Inputs: sha256:{digest(name)}\n" in path.read_text()


def main(arguments: Sequence[str]) -> int:
    """Write the files under the working directory, or check them; return the exit code."""
    if "--check" in arguments:
        stale = [manifest(name) for name in OPTIONS if not is_fresh(name)]
        for path in stale:
            sys.stderr.write(f"{path} is stale: run {COMMAND}\n")
        return 1 if stale else 0
    written = {manifest(name): render(name) for name in OPTIONS}
    return write_or_check(written, arguments, command=COMMAND)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
