"""Which files Python code reads and writes, and whether it sends something over the network, by its syntax tree."""

from __future__ import annotations

import ast
import re

NETWORK = {"requests", "httpx", "urllib", "urllib3", "aiohttp", "http", "socket", "smtplib", "ftplib", "paramiko",
           "boto3", "botocore", "websocket", "websockets", "telnetlib", "pycurl", "asyncssh", "fabric"}  # fmt: skip
SENDS = {"post", "put", "patch", "sendall", "send", "sendto", "sendfile", "send_message", "sendmail", "storbinary",
         "storlines", "upload_file", "upload_fileobj", "put_object", "upload_from_filename", "send_bytes"}  # fmt: skip
# Functions and methods that write, and which of their arguments is the file; None is what the method belongs to.
FILE_WRITES: dict[str, int | None] = {
    "write_text": None, "write_bytes": None, "touch": None, "symlink_to": None, "hardlink_to": None, "copy": 1,
    "copy2": 1, "copyfile": 1, "copytree": 1, "move": 1, "symlink": 1, "link": 1, "urlretrieve": 1, "unpack_archive": 1,
    "extractall": 0, "extract": 1, "to_csv": 0, "to_json": 0, "to_parquet": 0, "to_excel": 0, "to_pickle": 0,
    "savefig": 0, "save": 0, "savetxt": 0, "make_archive": 0, "download_file": 2, "mkfifo": 0, "chdir": 0,
}  # fmt: skip
FILE_READS = {"read_text": None, "read_bytes": None, "copy": 0, "copy2": 0, "copyfile": 0, "copytree": 0,
              "upload_file": 0, "read_csv": 0, "read_json": 0}  # fmt: skip
NAMED = {"dst", "path", "filename", "file", "fname", "path_or_buf", "extract_dir"}  # names of these arguments
MAX_DEPTH, MAX_TEXTS = 8, 20


class PythonFiles:
    """The files of one piece of code; None stands for a file whose name is not known."""

    def __init__(self, tree: ast.AST) -> None:
        self.nodes = list(ast.walk(tree))
        self.given: dict[str, list[ast.expr]] = {}  # what names may stand for
        self.modules: set[str] = set()
        functions = {node.name: node for node in self.nodes if isinstance(node, ast.FunctionDef)}
        for node in self.nodes:
            self.note(node, functions)
        self.written: set[str | None] = set()
        self.read: set[str | None] = set()
        self.sends = False
        for node in self.nodes:
            if isinstance(node, ast.Call):
                self.call(node)

    def note(self, node: ast.AST, functions: dict[str, ast.FunctionDef]) -> None:
        """Remember the values of names, those of a function's parameters too."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.named(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value:
            self.named(node.target, node.value)
        elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, (ast.List, ast.Tuple)):
            for value in node.iter.elts:
                self.named(node.target, value)
        elif isinstance(node, ast.Import):
            self.modules |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            self.modules.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
            parameters = functions[node.func.id].args
            for parameter, value in zip([*parameters.posonlyargs, *parameters.args], node.args):
                self.given.setdefault(parameter.arg, []).append(value)
            for keyword in node.keywords:
                if keyword.arg:
                    self.given.setdefault(keyword.arg, []).append(keyword.value)
        elif isinstance(node, ast.FunctionDef):
            defaults = node.args.defaults
            for parameter, value in zip(node.args.args[len(node.args.args) - len(defaults) :], defaults):
                self.given.setdefault(parameter.arg, []).append(value)

    def named(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.given.setdefault(target.id, []).append(value)

    def texts(self, node: ast.AST | None, depth: int = 0) -> set[str | None]:
        """The texts that an expression may have."""
        if depth > MAX_DEPTH:
            return {None}
        if isinstance(node, ast.Constant):
            return {node.value} if isinstance(node.value, str) else {None}
        if isinstance(node, ast.Name):
            values = self.given.get(node.id, [])[:MAX_TEXTS]
            return {text for value in values for text in self.texts(value, depth + 1)} or {None}
        if isinstance(node, ast.JoinedStr):
            return self.joined(node.values, "", depth)
        if isinstance(node, ast.FormattedValue):
            return self.texts(node.value, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            return self.joined([node.left, node.right], "" if isinstance(node.op, ast.Add) else "/", depth)
        if isinstance(node, ast.Subscript) and "environ" in ast.dump(node.value):
            return {"~"} if self.texts(node.slice, depth + 1) == {"HOME"} else {None}
        if isinstance(node, ast.Call):
            return self.called(node, depth)
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            return self.texts(node.value, depth + 1)
        return {None}

    def called(self, node: ast.Call, depth: int) -> set[str | None]:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "home":
            return {"~"}
        if name in ("getenv", "get") and node.args and self.texts(node.args[0], depth + 1) == {"HOME"}:
            return {"~"}
        if name in ("mkdtemp", "gettempdir", "mktemp"):
            return {"/tmp/x"}
        if name in ("join", "Path", "PurePath", "PosixPath", "joinpath") and node.args:
            owner = [node.func.value] if name == "joinpath" and isinstance(node.func, ast.Attribute) else []
            return self.joined([*owner, *node.args], "/", depth)
        if name in (
            "expanduser",
            "abspath",
            "realpath",
            "resolve",
            "absolute",
            "str",
            "fspath",
            "normpath",
            "expandvars",
        ):
            inner = node.args[0] if node.args else getattr(node.func, "value", None)
            return self.texts(inner, depth + 1)
        return {None}

    def joined(self, nodes: list[ast.expr], between: str, depth: int) -> set[str | None]:
        """Texts after each other. What follows a known beginning may be unknown: it is below it."""
        texts: set[str | None] = {""}
        for index, node in enumerate(nodes):
            more = self.texts(node, depth + 1)
            if None in more and not index:
                return {None}
            sign = between if index else ""
            texts = {f"{text}{sign}{'unknown' if each is None else each}" for text in texts for each in more}
            texts = set(list(texts)[:MAX_TEXTS])
        return texts

    def call(self, node: ast.Call) -> None:
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        owner = function.value if isinstance(function, ast.Attribute) else None
        if name == "open":
            self.opened(node, owner)
        elif name in FILE_WRITES and not (
            name in ("copy", "save", "extract", "link", "move") and len(node.args) <= (FILE_WRITES[name] or 0)
        ):
            self.written |= self.argument(node, owner, FILE_WRITES[name])
        if name in FILE_READS and name != "open" and not (name == "copy" and len(node.args) < 2):
            self.read |= self.argument(node, owner, FILE_READS[name])
        with_data = any(each.arg in ("data", "files", "json", "content", "body") for each in node.keywords)
        sends = name in SENDS or (name in ("Request", "urlopen", "request") and (with_data or len(node.args) > 1))
        self.sends = self.sends or (sends and bool(self.modules & NETWORK))

    def argument(self, node: ast.Call, owner: ast.expr | None, position: int | None) -> set[str | None]:
        if position is None:
            return self.texts(owner)
        if position < len(node.args):
            return self.texts(node.args[position])
        named = [each.value for each in node.keywords if each.arg in NAMED]
        return {text for value in named for text in self.texts(value)}

    def opened(self, node: ast.Call, owner: ast.expr | None) -> None:
        """`open(path, mode)` of a module, or `path.open(mode)`."""
        is_module = owner is None or (isinstance(owner, ast.Name) and owner.id not in self.given)
        arguments = node.args if is_module else [owner, *node.args] if owner else []
        modes = [each.value for each in node.keywords if each.arg == "mode"] or arguments[1:2]
        mode = "".join(text if text is not None else "w" for each in modes for text in self.texts(each))
        paths = self.texts(arguments[0]) if arguments else self.argument(node, None, 0)
        if re.search(r"[wax+]", mode):
            self.written |= paths
        else:
            self.read |= paths

    def constants(self) -> list[str]:
        """Texts that look like a path outside the project."""
        texts = [node.value for node in self.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        return [text for text in texts if re.fullmatch(r"(?:/|~/|\.\./)[\w./-]{2,200}", text)]
