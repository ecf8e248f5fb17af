"""The checks, each a small function; ``diagnose.py`` has them in tables."""
