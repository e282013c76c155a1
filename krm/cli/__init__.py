"""The commands that work on packages in local folders: ``porch fn`` and ``porch pkg``. No server is involved."""
