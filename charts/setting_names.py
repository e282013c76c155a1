"""Writes the names of all settings into the chart's ``values.schema.json``: ``python charts/setting_names.py``.

Without them Helm would take a misspelt variable, and the programs ignore what they do not know. With ``--check`` nothing
is written, and the exit code says whether the file is what would be written.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from apiserver import settings as server
from controllers import settings as controllers
from krm.generated_files import write_or_check

SCHEMA: Final = Path("charts/porch/values.schema.json")
CHOSEN: Final = frozenset(
    f"{server.PREFIX}{name}"
    for name in (
        *("AGGREGATED", "CONTROLLERS", "DATA", "DATABASE_URL", "HOST", "KUBECONFIG", "METRICS_PORT", "PORT"),
        "SHUTDOWN_DELAY",
        *("TLS_CERT_FILE", "TLS_NAMES", "TLS_PRIVATE_KEY_FILE", "TLS_SECRET"),
    )
) | frozenset(f"{controllers.PREFIX}{name}" for name in ("HOST", "KUBECONFIG", "LEASE_NAMESPACE", "PORT", "RUN"))
"""What other values say, or the chart itself. The database's URL holds a password, so it is no value at all."""

SCALAR: Final = {"$ref": "#/$defs/scalar"}


def server_variables() -> list[str]:
    """Return the environment variables of every setting of the server."""
    fields = server.Settings.model_fields.items()
    return sorted(str(field.validation_alias or server.PREFIX + name.upper()) for name, field in fields)


def controllers_variables() -> list[str]:
    """Return those of the controllers."""
    return sorted(controllers.PREFIX + name.upper() for name in controllers.Settings.model_fields)


def schema() -> bytes:
    """Return the file's content, the rest of it as it is."""
    content = json.loads(SCHEMA.read_bytes())
    for definition, names in (("serverSettings", server_variables()), ("controllersSettings", controllers_variables())):
        content["$defs"][definition]["properties"] = {name: SCALAR for name in names if name not in CHOSEN}
    return f"{json.dumps(content, indent=2)}\n".encode()


def main(arguments: Sequence[str]) -> int:
    """Write the file under the working directory, or check it."""
    return write_or_check({SCHEMA: schema()}, arguments, command="python charts/setting_names.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
