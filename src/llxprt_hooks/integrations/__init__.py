"""Hooks for clients and agent frameworks: one module each, which imports its framework and no other."""
