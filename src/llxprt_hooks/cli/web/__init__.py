"""The inspector: a page on this machine that shows events live. Imported when ``inspect`` is used."""
