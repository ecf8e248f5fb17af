"""The languages of other agents, so that the hooks people already have run unchanged (D-144): one module each.

``settings.foreign`` has the interface, and the table with one line per dialect.
"""
