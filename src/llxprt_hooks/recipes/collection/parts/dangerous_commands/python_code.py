"""What Python code does, by its syntax tree."""

from __future__ import annotations

import ast
import re

PLAIN_PYTHON = (ast.Module, ast.Expr, ast.alias, ast.keyword, ast.expr_context, ast.Name, ast.Constant, ast.Subscript,
                ast.Slice, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.List, ast.Tuple, ast.Dict, ast.Set,
                ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
                ast.IfExp, ast.If, ast.For, ast.Assign, ast.AugAssign, ast.ListComp, ast.SetComp, ast.DictComp,
                ast.GeneratorExp, ast.comprehension)  # fmt: skip


def is_harmless_python(text: str) -> bool:
    """Whether code does no more than import, compute and print: everything in it must be on a list."""
    functions = {"print", "len", "sorted", "list", "dict", "set", "tuple", "str", "int", "float", "bool",
                 "repr", "type", "dir", "range", "sum", "min", "max", "any", "all", "enumerate", "zip", "round", "abs",
                 "isinstance", "hasattr", "open", "chr", "ord", "hex", "bin", "reversed"}  # fmt: skip
    methods = {"items", "keys", "values", "get", "split", "strip", "rstrip", "lstrip", "join", "format", "append",
               "startswith", "endswith", "read", "readlines", "splitlines", "lower", "upper", "count", "index", "sort",
               "most_common", "update", "isoformat", "now", "today"}  # fmt: skip
    modules = {"json": {"load", "loads", "dumps"}, "math": None, "platform": None, "time": {"time"}, "re": None,
               "sysconfig": {"get_path", "get_paths"}, "site": {"getsitepackages"}, "tomllib": {"load", "loads"},
               "datetime": None, "collections": None, "itertools": None, "statistics": None}  # fmt: skip
    tree = parsed(text.strip())
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any(each.name == "*" or each.asname in {*functions, *modules} for each in node.names):
                return False
            if isinstance(node, ast.ImportFrom) and any(each.name in {*functions, *modules} for each in node.names):
                return False
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                reads = len(node.args) == 1 or getattr(node.args[1], "value", "") in ("r", "rb") if node.args else True
                fine = called.id in functions and (called.id != "open" or (reads and not node.keywords))
            else:
                owner = getattr(called, "value", None)
                allowed = modules.get(owner.id, methods) if isinstance(owner, ast.Name) else methods
                asks = called.attr.startswith("is_") and not node.args if isinstance(called, ast.Attribute) else False
                fine = isinstance(called, ast.Attribute) and (allowed is None or called.attr in allowed or asks)
            if not fine:
                return False
        elif isinstance(node, ast.Attribute):
            known = ("__version__", "__file__", "__name__", "__doc__", "__path__")
            if isinstance(node.ctx, ast.Store) or (node.attr.startswith("_") and node.attr not in known):
                return False
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if node.id in functions or node.id in modules:
                return False
        elif not isinstance(node, PLAIN_PYTHON):
            return False
    return tree is not None


# Python code that runs programs or deletes files: modules, names anywhere, and names in modules for files.
RISKY_MODULES = {"subprocess", "pty", "ctypes", "cffi", "importlib", "builtins", "runpy", "pexpect", "sh", "plumbum"}
RISKY_NAMES = re.compile(
    r"system|popen\w*|rmtree|unlink|rmdir|removedirs|(posix_)?spawn\w*|exec[lv]p?e?|fork(pty)?|__(import|builtins)__"
    r"|(create_)?subprocess_(shell|exec)|run_(line|cell)_magic|getoutput"
)
FILE_MODULES = {"os", "posix", "shutil"}
RISKY_IN_FILE_MODULES = {"remove", "rename", "renames", "replace", "kill", "killpg", "chmod", "chown", "lchown",
                         "truncate", "move", "*", "__dict__", "__getattribute__"}  # fmt: skip


def risky_python(tree: ast.AST | None, depth: int = 0) -> str | None:
    """What runs programs or deletes files in Python code, or None."""
    nodes = list(ast.walk(tree)) if tree else []
    modules = {name: name for name in FILE_MODULES}  # by the name that the code gives them; these are never replaced
    docstrings, owners, without_arguments = set(), set(), set()
    for node in nodes:
        if isinstance(node, ast.Import):
            for top, each in ((each.name.split(".")[0], each) for each in node.names):
                if modules.get(each.asname or top) not in FILE_MODULES:
                    modules[each.asname or top] = top
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.value)
        elif isinstance(node, ast.Attribute):
            owners.add(node.value)
        elif isinstance(node, ast.Call) and not node.args and not node.keywords:
            without_arguments.add(node.func)

    def module(node: ast.AST) -> str | None:
        return modules.get(node.id, node.id) if isinstance(node, ast.Name) else getattr(node, "attr", None)

    for node in nodes:
        found: list[str | None] = []
        if isinstance(node, ast.Import):
            found = [each.name for each in node.names if each.name.split(".")[0] in RISKY_MODULES]
        elif isinstance(node, ast.ImportFrom):
            top, names = (node.module or "").split(".")[0], {each.name for each in node.names}
            found = [node.module] if top in RISKY_MODULES else [*filter(RISKY_NAMES.fullmatch, names)]
            found += names & RISKY_IN_FILE_MODULES if top in FILE_MODULES else names & RISKY_MODULES
        elif isinstance(node, ast.Attribute):
            in_files = module(node.value) in FILE_MODULES and node.attr in RISKY_IN_FILE_MODULES
            in_system = module(node.value) == "sys" and node.attr == "modules"
            risky = in_files or in_system or node.attr in RISKY_MODULES - {"sh"} or RISKY_NAMES.fullmatch(node.attr)
            asks = node in without_arguments and module(node.value) == "platform"  # platform.system()
            found = [node.attr] if risky and not asks else []
        elif isinstance(node, ast.Name):
            handed_on = module(node) in FILE_MODULES and node not in owners and isinstance(node.ctx, ast.Load)
            risky = handed_on or node.id in ("exec", "eval") or RISKY_NAMES.fullmatch(node.id)
            found = [node.id] if risky or node.id in RISKY_MODULES - {"sh"} else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            is_code = depth < 3 and re.search(r"\(|\bimport\b", node.value)
            found = [risky_python(parsed(node.value.strip()), depth + 1)] if is_code else []
            if RISKY_NAMES.fullmatch(node.value) and node.value not in ("system", "fork", "spawn"):  # common words
                found = [node.value]
        if any(found):
            return found[0]
    return None


def parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
