"""The controllers' process: ``python -m controllers``, also ``porch controllers``.

SIGTERM and SIGINT end it in order, a second one at once; SIGUSR1 has every variant looked at again.
"""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

import click
import structlog
from pydantic import ValidationError
from pydantic_settings import SettingsError

from controllers.settings import PREFIX, Settings
from krm.logs import configure_logging

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_REFUSED: Final = 3
"""The process did not start, for a reason that the message names."""
STOP_WITHIN: Final = 8.0
"""Seconds from the first signal to the end of the process, whatever is still going on."""

log = structlog.get_logger()


@click.command()
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Kubeconfig of the API server.")
@click.option("--run", help="variants (default), or approval: what this process does.")
@click.option("--namespace", help="Namespace that is worked on; default: all.")
@click.option("--workers", type=int, help="Variants, or approvals, that are worked on at the same time.")
@click.option("--resync", type=float, help="Seconds after which every variant is looked at again.")
@click.option("--leader-election/--no-leader-election", default=None, help="Work only while holding a Lease.")
@click.option("--lease-namespace", help="Namespace of the Lease.")
@click.option("--lease-name", help="Name of the Lease.")
@click.option("--host", help="Address of health and metrics.")
@click.option("--port", type=int, help="TCP port of health and metrics; 0 takes a free one; default: none.")
@click.option("--log-level", help="debug, info, warning or error.")
@click.option("--log-format", help="json or console.")
@click.option(
    "--stop-with-stdin", is_flag=True, help="Stop when stdin is closed, as it is when the parent process ends."
)
def main(*, stop_with_stdin: bool, **given: Any) -> None:
    """Keep PackageVariants true, or follow approval policies, until Ctrl-C.

    Every other setting is an environment variable: see docs/reference/controllers-settings.md.
    """
    settings = _settings(given)
    configure_logging(settings.log_level, settings.log_format)
    # Not uvloop, which keeps what is written until the end of its turn: between the look at the Lease and the bytes on the
    # wire nothing may come. A client's requests cost the same.
    with asyncio.Runner() as runner:
        sys.exit(runner.run(_run(settings, stop_with_stdin=stop_with_stdin)))


async def _run(settings: Settings, *, stop_with_stdin: bool) -> int:
    """Work until told to stop; return the exit code."""
    from controllers.composition import Process
    from controllers.runtime.leader import LedWorkEnded
    from krm.client.kubeconfig import BadKubeconfig

    process = Process(settings)
    working = asyncio.create_task(process.run())
    loop = asyncio.get_running_loop()
    stop = _Stop(working)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.asked, number)
    loop.add_signal_handler(signal.SIGUSR1, process.resync)
    if stop_with_stdin:
        loop.add_reader(sys.stdin.fileno(), _heed_stdin, loop, stop)
    try:
        await working
    except asyncio.CancelledError:
        log.info("stopped")
        return 0
    except (BadKubeconfig, OSError) as error:
        click.echo(f"controllers: {error}", err=True)
        return EXIT_REFUSED
    except LedWorkEnded as error:
        log.exception("controllers failed", error=str(error))
        return EXIT_FAILED
    return 0


class _Stop:
    """The first request to stop ends the work in order, the second the process."""

    def __init__(self, working: "asyncio.Task[None]") -> None:
        self._working = working
        self._was_asked = False

    def asked(self, number: int) -> None:
        """Begin to stop; a thread sees to it that it ends, because the loop may be what hangs."""
        if self._was_asked:
            os._exit(128 + number)
        self._was_asked = True
        log.info("stopping", signal=number)
        watchdog = threading.Timer(STOP_WITHIN, os._exit, (EXIT_FAILED,))
        watchdog.daemon = True
        watchdog.start()
        self._working.cancel()


def _heed_stdin(loop: asyncio.AbstractEventLoop, stop: _Stop) -> None:
    """Stop when the other end of stdin is gone; whatever is written there means nothing."""
    try:
        gone = not os.read(sys.stdin.fileno(), 1024)
    except OSError:
        gone = True
    if gone:
        loop.remove_reader(sys.stdin.fileno())
        stop.asked(signal.SIGTERM)


def _settings(given: dict[str, Any]) -> Settings:
    """Put the command line's values over the environment's."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = "; ".join(f"{_option(problem['loc'])}{problem['msg']}" for problem in error.errors())
    except SettingsError as error:
        problems = str(error)
    click.echo(f"controllers: {problems}", err=True)
    sys.exit(EXIT_USAGE)


def _option(location: tuple[int | str, ...]) -> str:
    name = ".".join(str(part) for part in location)
    return f"--{name.replace('_', '-')} (or {PREFIX}{name.upper()}): " if name else ""


if __name__ == "__main__":
    main()
