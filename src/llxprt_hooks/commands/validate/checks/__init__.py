"""The checks; ``diagnose.py`` lists them."""
