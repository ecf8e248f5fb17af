"""Hooks by message, for programs whose parts talk through a message bus. A new bus is one module here."""
