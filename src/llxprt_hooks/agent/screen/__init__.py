"""The agent's user interfaces: a single prompt (``-p``, piped input, ``--headless``) and interactive."""
