"""The one way in which a package cannot be given what a variant asks for."""


class MutationError(Exception):
    """A package cannot be changed as its variant says; the text names the file and what is wrong with it.

    The draft, if there is one, stays as it was. Trying again helps only when the package or the variant changed.
    """
