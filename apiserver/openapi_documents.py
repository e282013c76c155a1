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
from krm.generated_files import write_or_check

FOLDER = Path("openapi")


def documents() -> Mapping[Path, bytes]:
    """Build every document, by its path below the project's root."""
    # Wiring opens nothing, but the key for Secrets wants a place.
    with tempfile.TemporaryDirectory() as data:
        served = create_server(Settings(data=Path(data))).served
    return {FOLDER / name: content for name, content in OpenApi(served).files().items()}


def main(arguments: Sequence[str]) -> int:
    """Write the documents under the working directory, or check them."""
    command = "python -m apiserver.openapi_documents"
    return write_or_check(documents(), arguments, command=command, present=FOLDER.rglob("*.json"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
