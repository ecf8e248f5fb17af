"""Hooks over a message bus. A new bus is one module here."""
