"""The outcome of a render. Source: ``kpt.md`` 2.9–2.13."""

from dataclasses import dataclass, field
from typing import Any

from krm.functions.step_record import StepRecord
from krm.package.contents import File
from krm.package.kptfile import RenderedStatus


@dataclass(frozen=True, slots=True)
class Repeat:
    """What rendering an outcome's contents again gives: the same files, but for the root Kptfile's status."""

    kptfile: bytes
    """The root Kptfile afterwards."""
    results: dict[str, Any]
    status: RenderedStatus
    steps: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The outcome of a render; can be pickled."""

    contents: dict[str, File]
    """The package as a render in place leaves it.

    After a failure that is the package as it was given, or with ``kpt.dev/save-on-render-failure`` what was
    reached; in either case with the status in the root Kptfile, if ``status`` says so. Files that did not
    change are the very objects that were given.
    """
    results: dict[str, Any]
    """The FunctionResultList of the functions that ran, empty when none did."""
    error: str = ""
    """Of a failure: the chain of causes and what the failed functions said, for clients of the API."""
    failed: bool = False
    status: RenderedStatus | None = None
    """What the root Kptfile says of the render; None when it says nothing, because the root's own Kptfile or
    pipeline could not be read, or because there is no Kptfile."""
    cause: str = ""
    """Of a failure: the innermost cause, for a terminal; empty when the functions' results say it all."""
    steps: tuple[StepRecord, ...] = ()
    """All that ran or should have, in order."""
    packages: int = 0
    """How many packages had their turn, those without functions included."""
    is_deterministic: bool = False
    """Whether the same package is known to give the same outcome always; only found out when looking ahead."""
    repeats: tuple[Repeat, ...] = field(default=(), repr=False)
    """What rendering ``contents`` again gives, what rendering that again gives, and so on, as far as it was
    looked ahead; the last one gives itself when its Kptfile is the one before."""
