"""Hooks between two other programs: they need no change, and no framework is imported."""
