"""Where objects and package contents live: the log, the watch cache, Git."""
