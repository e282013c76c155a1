"""``porch fn``: run functions on packages in local folders. Source: ``kpt.md`` 2.10 and 2.16."""

import typer

cli = typer.Typer(
    name="fn",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Run functions on packages in local folders.",
)

@cli.command()
def render() -> None:
    """Render."""

@cli.command()
def source() -> None:
    """Source."""
