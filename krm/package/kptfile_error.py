"""The one way a Kptfile can be wrong."""


class KptfileError(ValueError):
    """A Kptfile cannot be read: which file, what is wrong, at which key and line.

    ``key`` is dotted (``pipeline.mutators[0].image``), empty when it is not one key; ``line`` counts
    from 1, 0 when unknown.
    """

    def __init__(self, path: str, problem: str, *, key: str = "", line: int = 0) -> None:
        where = f"{path}: {key}: " if key else f"{path}: "
        super().__init__(where + problem)
        self.path = path
        self.problem = problem
        self.key = key
        self.line = line
