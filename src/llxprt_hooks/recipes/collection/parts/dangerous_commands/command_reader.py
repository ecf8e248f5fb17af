"""Reads a command line: with tree-sitter-bash if it can, otherwise with the small reader."""

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_line import UNREADABLE_CHARACTER, Unreadable
from llxprt_hooks.recipes.collection.parts.dangerous_commands.small_reader import SmallReader
from llxprt_hooks.recipes.collection.parts.dangerous_commands.tree_reader import PARSER, TreeReader


def read(text):
    if UNREADABLE_CHARACTER.search(text):
        raise Unreadable("it has characters that do not belong in a command")
    if PARSER:
        try:
            return TreeReader(text).read()
        except Unreadable:
            pass  # perhaps the other one can
    return SmallReader(text).read()
