"""What can be wrong with an expression: its text, its evaluation, or what it costs."""


class CelError(Exception):
    """Something is wrong with an expression; the text says what, in cel-go's words where it has any."""


class CelSyntaxError(CelError):
    """The expression does not compile."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        """From 1."""
        self.column = column
        """From 1, in characters."""

    def pointing(self, text: str) -> str:
        """Return the message as cel-go prints it: with its place, the line, and an arrow below."""
        lines = text.splitlines() or [""]
        line = lines[min(self.line, len(lines)) - 1]
        arrow = "." * (self.column - 1) + "^"
        return f"ERROR: <input>:{self.line}:{self.column}: {self.message}\n | {line}\n | {arrow}"


class CelEvaluationError(CelError):
    """The expression has no value for these variables: a missing key, a wrong type, an overflow."""


class CelBudgetError(CelError):
    """The evaluation took more steps than it may; it was stopped."""
