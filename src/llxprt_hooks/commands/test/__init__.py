"""Tests for hooks: the files that have them, and what they expect."""
