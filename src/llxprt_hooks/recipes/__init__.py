"""Recipes: ready-made hooks to copy into a project, or to install for all of a user's projects.

Each is a folder in ``collection``: scripts, the settings that run them, a description, and a sample payload to try them
with. The installed scripts are standalone: ``bundle`` writes the code that they share into each.

>>> find_recipe("secret-scanning").summary
'Blocks writes and commands that contain a key, a token or a password.'
"""

from llxprt_hooks.recipes.catalogue import FIRST_HOOK, NAMES, UnknownRecipeError, find_recipe
from llxprt_hooks.recipes.tools import ROLES

__all__ = ["FIRST_HOOK", "NAMES", "ROLES", "UnknownRecipeError", "find_recipe"]
