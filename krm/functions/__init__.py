"""The function pipeline and the functions that run in process."""
