"""The agent's modes of use: on one prompt (``-p``, piped input, ``--headless``), and interactive."""
