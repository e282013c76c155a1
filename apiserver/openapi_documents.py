"""Writes the OpenAPI documents of the standalone server to ``openapi/``: ``python -m apiserver.openapi_documents``.

They are committed so that a change of the API shows in a review. With ``--check`` nothing is written, and the exit
code says whether the files are what would be written.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from apiserver.machinery.openapi import OpenApi
from apiserver.settings import Settings
from apiserver.standalone import create_server

FOLDER = Path("openapi")


def documents() -> Mapping[Path, bytes]:
    """Build every document, by its path below the project's root."""
    # Wiring opens nothing, but the key for Secrets wants a place.
    with tempfile.TemporaryDirectory() as data:
        served = create_server(Settings(data=Path(data))).served
    return {FOLDER / name: content for name, content in OpenApi(served).files().items()}


def main(arguments: Sequence[str]) -> int:
    """Write the documents under the working directory, or check them."""
    wanted = documents()
    present = {path: path.read_bytes() for path in FOLDER.rglob("*.json")}
    stale = sorted({*wanted, *present} - {path for path in wanted if wanted[path] == present.get(path)})
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path} is stale: run python -m apiserver.openapi_documents\n")
        return 1 if stale else 0
    for path in present.keys() - wanted.keys():
        path.unlink()
    for path, content in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
