"""A record of every execution that cannot be changed unnoticed, and that reaches a central place.

``record`` makes the record, ``content`` the hash of what a hook runs, ``chain`` links records by their hashes,
``spool`` keeps them in files until a server has them, ``trail`` is the observer that does this for a program, and
``stream`` reads them back from the server.
"""
