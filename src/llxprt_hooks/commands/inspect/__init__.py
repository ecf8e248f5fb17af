"""The events of the log for ``inspect``: grouped, filtered, fired again, and the hooks among them to look at."""
