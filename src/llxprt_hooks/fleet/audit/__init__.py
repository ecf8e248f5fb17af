"""A record of every execution: in the local log, and so that it cannot be changed unnoticed, in a central place.

``record`` makes the record. ``log`` is the observer that writes the log, with payloads while ``recording`` says so.
``trail`` is the observer that sends records to a server: ``content`` is the hash of what a hook runs, ``chain`` links
records by their hashes, ``spool`` keeps them in files until the server has them, and ``stream`` reads them back.
"""
