"""A limit on the work that one call of a function may do, for functions whose output can outgrow their input."""

from typing import Any

from krm.package.yaml_reader import MAX_DEPTH

_CHARACTERS = 64
"""Of a text that count as much as one value."""


class BudgetExceeded(Exception):
    """The configuration asks for more work, or for larger data, than one call may do."""


class WorkBudget:
    """Counts values that are looked at and written."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def spend(self, amount: int) -> None:
        """Take ``amount`` off.

        Raises:
            BudgetExceeded: there is not so much left.
        """
        self._left -= amount
        if self._left < 0:
            raise BudgetExceeded(f"more than {self._limit} values would be looked at or written; split the package")

    def spend_on(self, value: Any, depth: int) -> None:
        """Take off what a copy of ``value`` costs that is put ``depth`` levels deep.

        Raises:
            BudgetExceeded: there is not so much left, or the result would nest too deeply to be read again.
        """
        level = [value]
        while level:
            if depth > MAX_DEPTH:
                raise BudgetExceeded(f"a value would be nested deeper than {MAX_DEPTH} levels")
            below: list[Any] = []
            for item in level:
                if isinstance(item, str):
                    self.spend_on_text(item)
                    continue
                self.spend(1)
                if isinstance(item, dict):
                    below += item.keys()
                    below += item.values()
                elif isinstance(item, list):
                    below += item
            level = below
            depth += 1

    def spend_on_text(self, text: str) -> None:
        """Take off what it costs to go through ``text`` once.

        Raises:
            BudgetExceeded: there is not so much left.
        """
        self.spend(1 + len(text) // _CHARACTERS)
