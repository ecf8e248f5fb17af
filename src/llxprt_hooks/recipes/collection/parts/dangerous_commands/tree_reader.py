"""Reads a command line with tree-sitter-bash, if it is installed."""

import re

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_line import (
    ENTER,
    LEAVE,
    PROCESS,
    QUOTED,
    UNKNOWN,
    Command,
    Unreadable,
    ansi_c,
    assignment,
    expansion,
    parameter,
    substitution,
)

try:
    import tree_sitter
    import tree_sitter_bash

    PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
except Exception:  # not installed, or a version with another interface
    PARSER = None


class TreeReader:
    """Reads a command line with tree-sitter. An error in the tree, or a node that is not expected, is unreadable."""

    BLOCKS = ("program", "list", "compound_statement", "do_group", "if_statement", "elif_clause", "else_clause",
              "while_statement", "case_statement", "case_item", "function_definition", "negated_command", "pipeline",
              "subshell", "c_style_for_statement", "command_substitution", "process_substitution")  # fmt: skip
    STATEMENTS = (*BLOCKS, "command", "redirected_statement", "for_statement", "declaration_command", "unset_command",
                  "test_command", "variable_assignment", "variable_assignments")  # fmt: skip
    SHELLS_OF_THEIR_OWN = ("subshell", "command_substitution", "process_substitution")

    def __init__(self, text):
        self.source = text.replace("\\\n", "").encode()
        self.script = []

    def read(self):
        root = PARSER.parse(self.source).root_node
        if root.has_error:
            raise Unreadable("it is not valid shell")
        self.statement(root)
        return self.script

    def text(self, node):
        return self.source[node.start_byte : node.end_byte].decode()

    def statement(self, node):
        """Read a statement; the commands of it that a pipe may lead to are given back, the others are in the script."""
        kind = node.type
        if kind == "command":
            return [self.command(node)]
        if kind == "redirected_statement":
            return self.redirected(node)
        if kind in ("declaration_command", "unset_command"):
            command = Command()
            command.words = [self.word(child) for child in node.children]
            return [command]
        if kind in ("variable_assignment", "variable_assignments"):
            command = Command()
            for child in [node] if kind == "variable_assignment" else node.children:
                self.assignment(child, command)
            return [command]
        if kind == "test_command":
            self.substitutions(node)
            return []
        if kind == "for_statement":
            return self.loop(node)
        if kind not in self.BLOCKS:
            raise Unreadable(f"it has a {kind.replace('_', ' ')}")
        return self.block(node)

    def block(self, node):
        if node.type in self.SHELLS_OF_THEIR_OWN:
            self.script.append(ENTER)
        pipeline, waiting = [], None
        for child in node.children:
            if child.type in self.STATEMENTS:
                if waiting is not None:
                    self.script.append((waiting, child.prev_sibling.type if child.prev_sibling else ""))
                    waiting = None
                commands = self.statement(child)
                if node.type == "pipeline":
                    pipeline += commands
                else:
                    waiting = commands
            elif child.type not in ("word", "comment", "heredoc_body") and child.is_named:
                self.substitutions(child)
        if waiting is not None:
            after = node.next_sibling.type if node.next_sibling else ""
            self.script.append((waiting, after if node.type == "list" else ""))
        if node.type in self.SHELLS_OF_THEIR_OWN:
            self.script.append(LEAVE)
        return pipeline

    def command(self, node):
        command = Command()
        for child in node.children:
            if child.type == "variable_assignment":
                self.assignment(child, command)
            elif child.type == "command_name":
                command.words.append(self.word(child.children[0]))
            elif child.type in ("file_redirect", "herestring_redirect"):
                self.redirection(child, command)
            elif child.type == "subshell":
                raise Unreadable("it has a bracket in the middle of a command")
            else:
                command.words.append(self.word(child))
        return command

    def redirected(self, node):
        body, *redirects = node.children
        commands = self.statement(body) if body.type in self.STATEMENTS else [Command()]
        if body.type not in self.STATEMENTS:
            redirects = node.children
        command = commands[-1] if commands else Command()
        if redirects and body.end_byte == redirects[0].start_byte and re.fullmatch(r"\d+", (command.words or [""])[-1]):
            command.words.pop()  # the grammar takes the 0 of `0<file` for a word
        following = []
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                following += self.here_document(redirect, command)
            else:
                self.redirection(redirect, command)
        return (commands or [command]) + following

    def here_document(self, node, command):
        following, body, expands = [], "", False
        for child in node.children:
            if child.type == "heredoc_body":
                body = self.text(child)
                expands = bool(child.children) and any(each.type != "heredoc_content" for each in child.children)
                self.substitutions(child)
            elif child.type in ("file_redirect", "herestring_redirect"):
                self.redirection(child, command)
            elif child.type in self.STATEMENTS:
                following += self.statement(child)
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end", "file_descriptor"):
                command.words.append(self.word(child))
        command.stdin = ("text", None if expands else body)
        return following

    def redirection(self, node, command):
        operator, targets = "", []
        for child in node.children:
            if child.type == "file_descriptor":
                continue
            if child.is_named:
                targets.append(child)
            else:
                operator = child.type
        if not targets:
            return
        target = self.word(targets[0])
        command.words += map(self.word, targets[1:])  # the grammar takes what follows for more targets
        if operator not in (">&", "<&") or not re.fullmatch(r"\d+-?|-", target):
            command.redirect(operator, target)

    def assignment(self, node, command):
        if node.type != "variable_assignment":
            return
        target, operator, *value = node.children
        name = re.match(r"\w*", self.text(target)).group()
        plain = target.type == "variable_name" and operator.type == "=" and len(value) <= 1
        if plain and (not value or value[0].type != "array"):
            command.assigned.append((name, self.word(value[0]) if value else ""))
        else:
            self.substitutions(node)
            command.assigned.append((name, None))

    def loop(self, node):
        command = Command()
        name = next(self.text(child) for child in node.children if child.type == "variable_name")
        given = [child for child in node.children if child.is_named and child.type not in ("variable_name", "do_group")]
        command.assigned += [(name, self.word(child)) for child in given] or [(name, None)]
        self.script.append(([command], ""))
        for child in node.children:
            if child.type == "do_group":
                self.block(child)
        return []

    def substitutions(self, node):
        """Read the commands that are substituted somewhere inside, and names that arithmetic may set."""
        if node.type in ("command_substitution", "process_substitution"):
            self.block(node)
        elif node.type in ("expansion", "simple_expansion"):
            self.word(node)
        else:
            if node.type in ("variable_name", "word") and re.fullmatch(r"[A-Za-z_]\w*", self.text(node)):
                self.script.append(([assignment(self.text(node), None)], ""))
            for child in node.children:
                self.substitutions(child)

    def word(self, node, quoted=False):
        kind, text = node.type, self.text(node)
        if kind in ("word", "number", "variable_name", "extglob_pattern", "regex", "brace_expression", "test_operator"):
            if kind == "extglob_pattern" and "(" in text:
                raise Unreadable("it has an extended pattern")
            plain = re.sub(r"\\(.)", lambda found: found.group(1).translate(QUOTED), text, flags=re.DOTALL)
            return plain if kind != "brace_expression" or not node.child_count else text
        if not node.is_named:
            return text
        if kind == "raw_string":
            return text[1:-1].translate(QUOTED)
        if kind == "ansi_c_string":
            return ansi_c(text[2:-1]).translate(QUOTED)
        if kind == "variable_assignment":
            self.substitutions(node)
            name = re.match(r"\w*", text).group()
            value = node.children[-1]
            plain = len(node.children) == 3 and value.type not in ("array", "=")
            return f"{name}={self.word(value)}" if plain else f"{name}={UNKNOWN}"
        if kind == "string":
            return self.pieces(node, node.start_byte + 1, node.end_byte - 1)
        if kind == "translated_string":
            return self.word(node.children[-1])
        if kind == "concatenation":
            return "".join(map(self.word, node.children))
        if kind == "simple_expansion":
            return expansion(text[1:], quoted)
        if kind == "expansion":
            for child in node.children:
                self.substitutions(child) if child.child_count else None
            return parameter(text[2:-1], self.script, quoted)
        if kind == "command_substitution":
            self.block(node)
            return substitution(text.strip("`") if text.startswith("`") else text[2:-1], quoted)
        if kind == "process_substitution":
            self.block(node)
            return PROCESS
        if kind == "arithmetic_expansion":
            self.substitutions(node)
            return UNKNOWN
        raise Unreadable(f"it has a {kind.replace('_', ' ')}")

    def pieces(self, node, start, end):
        """The text of a string in double quotes; the grammar leaves some of it between the nodes."""
        word, at = "", start
        for child in node.children:
            if child.type in ("string_content", '"') or child.start_byte < at:
                continue
            word += self.unescaped(at, child.start_byte) + self.word(child, quoted=True)
            at = child.end_byte
        return word + self.unescaped(at, end)

    def unescaped(self, start, end):
        return re.sub(r'\\([$`"\\])', r"\1", self.source[start:end].decode()).translate(QUOTED)
