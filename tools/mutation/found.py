"""The changes that can be made to a crate: cargo-mutants' list, in its words, by its rules.

All changes of a file can be planted side by side: the replaced code stays in place, behind the condition that
the change is not chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

from mutation.values import EMPTY, of_return_type, text

PARSER = Parser(Language(tree_sitter_rust.language()))

OPERATORS = {
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "<": ["==", ">", "<="],
    ">": ["==", "<", ">="],
    "<=": [">"],
    ">=": ["<"],
    "+": ["-", "*"],
    "-": ["+", "/"],
    "*": ["+", "/"],
    "/": ["%", "*"],
    "%": ["/", "+"],
    "<<": [">>"],
    ">>": ["<<"],
    "&": ["|", "^"],
    "|": ["&", "^"],
    "^": ["|", "&"],
    "+=": ["-=", "*="],
    "-=": ["+=", "/="],
    "*=": ["+=", "/="],
    "/=": ["%=", "*="],
    "%=": ["/=", "+="],
    "<<=": [">>="],
    ">>=": ["<<="],
    "&=": ["|="],
    "|=": ["&="],
    "^=": ["|=", "&="],
}

# Code that is compiled for tests, or for models of threads, is no part of the crate.
APART = re.compile(r"^#\[(cfg\((test|shuttle|all\((test|shuttle))|(\w+::)*test\b)")
# Chains of `let` cannot be changed in part; a guard with one is left alone.
CHAINS = ("let_chain", "let_condition")


@dataclass
class Change:
    """One change to one place of a file."""

    file: Path
    """Relative to the workspace."""
    line: int
    column: int
    does: str
    """The change, and its function."""
    site: Site
    new: str
    """The code that runs if it is chosen."""
    number: int = 0
    """The number by which it is chosen, from 1."""

    @property
    def name(self) -> str:
        """The name that cargo-mutants gives."""
        return f"{self.file}:{self.line}:{self.column}: {self.does}"


@dataclass(frozen=True)
class Site:
    """A place of changes: its code stays, where no change is chosen."""

    kind: str
    """"value" (an expression), "body" (of a function), "iterator" (a body), "arm" (of a match) or "guard"."""
    start: int
    end: int
    """Offsets in the file, in bytes."""


@dataclass
class Source:
    """A file of the crate."""

    path: Path
    code: bytes
    changes: list[Change] = field(default_factory=list)
    constant: list[tuple[int, int]] = field(default_factory=list)
    """Places of `const` functions, which cannot query the chosen change."""


def sources(root: Path, crate: Path) -> list[Source]:
    """The files of a crate below the workspace's root that `src/lib.rs` leads to, with their changes."""
    found = []
    waiting = [(crate / "src/lib.rs", crate / "src")]
    while waiting:
        path, modules = waiting.pop()
        source = Source(path, (root / path).read_bytes())
        reader = _Reader(source)
        root_node = PARSER.parse(source.code).root_node
        if root_node.has_error:
            raise ValueError(f"{path} is Rust that the parser does not know: a newer tree-sitter-rust may")
        reader.read(root_node, [])
        found.append(source)
        for module in reader.modules:
            flat, nested = modules / f"{module}.rs", modules / module / "mod.rs"
            waiting.append((flat if (root / flat).exists() else nested, modules / module))
    return sorted(found, key=lambda source: source.path)


class _Reader:
    """Walks through a file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.modules: list[str] = []
        """Modules declared here whose code is in another file."""

    def read(self, node: Node, within: list[str]) -> None:
        """Collects the changes of a node, in these modules, implementations and functions."""
        apart = False
        for child in node.named_children:
            if child.type == "attribute_item":
                apart = apart or APART.search(_squashed(child)) is not None
            elif "comment" not in child.type:
                if not apart:
                    self._item(child, within)
                apart = False

    def _item(self, node: Node, within: list[str]) -> None:
        match node.type:
            case "mod_item":
                name = text(_field(node, "name"))
                body = node.child_by_field_name("body")
                if body is None:
                    self.modules.append(name)
                else:
                    self.read(body, [*within, name])
            case "impl_item":
                trait = node.child_by_field_name("trait")
                name = _squashed(_field(node, "type"))
                if trait is None:
                    self.read(node, [*within, name])
                elif not text(trait).endswith("Default"):
                    self.read(node, [*within, f"<impl {_squashed(trait)} for {name}>"])
            case "trait_item":
                self.read(node, [*within, text(_field(node, "name"))])
            case "function_item":
                self._function(node, within)
            case "binary_expression" | "compound_assignment_expr":
                self._binary(node, within)
            case "unary_expression":
                self._unary(node, within)
            case "match_expression":
                self._match(node, within)
            case "token_tree" | "macro_definition":
                pass
            case _:
                self.read(node, within)

    def _function(self, node: Node, within: list[str]) -> None:
        name, body = text(_field(node, "name")), _field(node, "body")
        member = any(part[:1].isupper() or part.startswith("<impl") for part in within)
        modifiers = next((part for part in node.named_children if part.type == "function_modifiers"), None)
        words = text(modifiers).split() if modifiers else []
        if not body.named_children or (name == "new" and member) or "unsafe" in words:
            return
        within = [*within, name]
        returns = node.child_by_field_name("return_type")
        arrow = f" -> {_squashed(returns)}" if returns else ""
        before = len(self.source.changes)
        first = body.named_children[0]
        inner = re.sub(r"\s", "", text(body))
        for value in of_return_type(returns):
            if inner != re.sub(r"\s", "", f"{{{value}}}"):
                kind = "iterator" if value == EMPTY else "body"
                site = Site(kind, body.start_byte + 1, body.end_byte - 1)
                self._add(first, f"replace {'::'.join(within)}{arrow} with {value}", site, value)
        self.read(body, within)
        if modifiers and "const" in words and len(self.source.changes) > before:
            start = modifiers.start_byte + text(modifiers).index("const")
            self.source.constant.append((start, start + len("const")))

    def _binary(self, node: Node, within: list[str]) -> None:
        left, right, operator = (_field(node, part) for part in ("left", "right", "operator"))
        assigns = node.type == "compound_assignment_expr"
        for other in OPERATORS.get(text(operator), []):
            new = (
                f"{text(left)} {other} ({text(right)}\n)"
                if assigns
                else f"({text(left)}\n) {other} ({text(right)}\n)"
            )
            site = Site("value", node.start_byte, node.end_byte)
            self._add(operator, f"replace {text(operator)} with {other}{_in(within)}", site, new)
        self.read(node, within)

    def _unary(self, node: Node, within: list[str]) -> None:
        operator = node.children[0]
        if text(operator) in ("!", "-"):
            new = f"({text(node.children[-1])}\n)"
            site = Site("value", node.start_byte, node.end_byte)
            self._add(operator, f"delete {text(operator)}{_in(within)}", site, new)
        self.read(node, within)

    def _match(self, node: Node, within: list[str]) -> None:
        arms = [arm for arm in _field(node, "body").named_children if arm.type == "match_arm"]
        patterns = [_field(arm, "pattern") for arm in arms]
        falls_through = any(text(pattern) == "_" for pattern in patterns)
        for arm, pattern in zip(arms, patterns, strict=True):
            guard = pattern.child_by_field_name("condition")
            if guard is None:
                if falls_through and text(pattern) != "_":
                    site = Site("arm", pattern.end_byte, pattern.end_byte)
                    self._add(arm, f"delete match arm {_squashed(pattern)}{_in(within)}", site, "")
            elif guard.type not in CHAINS:
                site = Site("guard", guard.start_byte, guard.end_byte)
                for value in ("true", "false"):
                    does = f"replace match guard {_squashed(guard)} with {value}{_in(within)}"
                    self._add(guard, does, site, value)
        self.read(node, within)

    def _add(self, at: Node, does: str, site: Site, new: str) -> None:
        row, column = at.start_point
        line = self.source.code.splitlines()[row][:column].decode()
        self.source.changes.append(Change(self.source.path, row + 1, len(line) + 1, does, site, new))


def _field(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    assert child is not None
    return child


def _squashed(node: Node) -> str:
    return re.sub(r"\s+", " ", text(node))


def _in(within: list[str]) -> str:
    return f" in {'::'.join(within)}" if within else ""


def numbered(found: list[Source]) -> Iterator[Change]:
    """Gives the changes their numbers, from 1."""
    changes = (change for source in found for change in source.changes)
    for number, change in enumerate(changes, 1):
        change.number = number
        yield change
