"""Why a package cannot be updated. Source: ``kpt.md`` 1.1, 3.9 and 3.10."""

from collections.abc import Sequence


class UpdateError(ValueError):
    """The update is refused; nothing has been changed."""


class UnknownStrategy(UpdateError):
    """No update strategy has this name."""

    def __init__(self, strategy: str) -> None:
        super().__init__(f'unknown update strategy "{strategy}"')
        self.strategy = strategy


class SubpackageAddedTwice(UpdateError):
    """Both sides added a subpackage at the same path; one of them has to move."""

    def __init__(self, directory: str) -> None:
        super().__init__(f'subpackage "{directory}" added in both upstream and local')
        self.directory = directory


class LocallyModified(UpdateError):
    """Fast-forward would lose local edits; ``paths`` names what was edited."""

    def __init__(self, paths: Sequence[str]) -> None:
        names = " ".join(paths)
        super().__init__(f"local package files have been modified: [{names}].\n  use a different update --strategy.")
        self.paths = tuple(paths)
