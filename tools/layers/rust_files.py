"""The arrows between the files of a Rust crate: which other files the paths in each name.

A path is followed to the file that defines its item: a module that only re-exports a name (`pub use`) is not
the target, and declaring a module is no use of it. Code under `#[cfg(test)]`, comments and strings do not
count. Macros and traits' methods are found by their paths alone, as `use` has them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

# Text that is not code: comments (nested ones are rare enough), strings, characters.
_NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""",
    re.DOTALL,
)
_TEST = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
_USE = re.compile(r"(?P<pub>pub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
_PATH = re.compile(r"(?<![\w:$])[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+")
_DECLARED = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*;")

Path_ = tuple[str, ...]


def arrows(root: Path) -> dict[str, set[str]]:
    """Returns the files that each file of the crate in `root` names; both as paths below `root`."""
    modules = {_module(path, root): path for path in sorted(root.rglob("*.rs")) if not _is_test(path, root)}
    crate = _Crate({module: code(path.read_text()) for module, path in modules.items()})
    names = {module: path.relative_to(root).as_posix() for module, path in modules.items()}
    graph = {}
    for module in modules:
        found = {crate.defined_in(path) for path in crate.used_by(module)}
        graph[names[module]] = {names[m] for m in found if m is not None and m != module}
    return graph


def code(text: str) -> str:
    """Returns a file without comments, strings, and code for tests alone."""
    text = _NO_CODE.sub(" ", text)
    while match := _TEST.search(text):
        text = text[: match.start()] + text[_item_end(text, match.end()) :]
    return text


def _item_end(text: str, start: int) -> int:
    """Returns the end of the item that begins here: at its semicolon, or its closing brace."""
    depth = 0
    for n in range(start, len(text)):
        if text[n] == "{":
            depth += 1
        elif text[n] == "}":
            depth -= 1
            if depth == 0:
                return n + 1
        elif text[n] == ";" and depth == 0:
            return n + 1
    return len(text)


def _module(path: Path, root: Path) -> Path_:
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def _is_test(path: Path, root: Path) -> bool:
    return any(part in ("tests", "tests.rs") for part in path.relative_to(root).parts)


class _Crate:
    """Returns the modules of a crate by their paths, with the names that each imports."""

    def __init__(self, texts: dict[Path_, str]) -> None:
        self._texts = texts
        # For each module: the meaning of its names, as paths from the crate's root.
        self._names: dict[Path_, dict[str, Path_]] = {module: {} for module in texts}
        self._globs: dict[Path_, list[Path_]] = {module: [] for module in texts}
        self._plain: dict[Path_, set[Path_]] = {module: set() for module in texts}
        for module, text in texts.items():
            for match in _USE.finditer(text):
                for path, name in _leaves(match["tree"]):
                    whole = self._from_root(module, path)
                    if whole is None:
                        continue
                    if name == "*":
                        self._globs[module].append(whole)
                    else:
                        self._names[module][name] = whole
                    if match["pub"] is None:
                        self._plain[module].add(whole)

    def used_by(self, module: Path_) -> Iterator[Path_]:
        """The paths, from the root, that a module names: in its code, and in a `use` of its own."""
        yield from self._plain[module]
        for match in _PATH.finditer(_DECLARED.sub("", _USE.sub("", self._texts[module]))):
            path = tuple(match[0].split("::"))
            whole = self._from_root(module, path)
            if whole is None and path[0] in self._names[module]:
                whole = self._names[module][path[0]] + path[1:]
            if whole is not None:
                yield whole

    def defined_in(self, path: Path_) -> Path_ | None:
        """Returns the module whose file defines the item of a path from the root."""
        for _ in range(20):  # a circular `use` does not compile, but is not checked here
            module = path
            while module not in self._texts:
                module = module[:-1]
            rest = path[len(module) :]
            if not rest:
                return module
            onward = self._names[module].get(rest[0])
            if onward is None:
                return next(filter(None, (self._globbed(g, rest[0]) for g in self._globs[module])), module)
            if (
                onward[: len(module)] == module
                and onward[len(module) :][:1] == rest[:1]
                and len(onward) == len(path)
            ):
                return module
            path = onward + rest[1:]
        return None

    def _globbed(self, module: Path_, name: str) -> Path_ | None:
        """Returns the module from which `use module::*` has a name, if there is one."""
        if (*module, name) in self._texts:
            return (*module, name)
        if name in self._names.get(module, {}):
            return self.defined_in((*module, name))
        word = rf"\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\s+{name}\b"
        return module if re.search(word, self._texts.get(module, "")) else None

    def _from_root(self, module: Path_, path: Path_) -> Path_ | None:
        """A path that a module writes, from the root; None if it leads to another crate or a local name."""
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                module = module[:-1] if path[0] == "super" else module
                path = path[1:]
            return module + path
        return module + path if module + path[:1] in self._texts else None


def _leaves(tree: str) -> Iterator[tuple[Path_, str]]:
    """The paths of a `use` tree, and the name that each gets."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, alias = tree.partition(" as ")
        parts = tuple(part.strip() for part in path.strip().split("::") if part.strip())
        if parts[-1] == "self":
            parts = parts[:-1]
        if parts and parts[-1] == "*":
            yield parts[:-1], "*"
        elif parts:
            yield parts, alias.strip() or parts[-1]
        return
    prefix, _, inner = tree.partition("{")
    inner = inner[: inner.rindex("}")]
    depth, start = 0, 0
    pieces = []
    for n, letter in enumerate(inner):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            pieces.append(inner[start:n])
            start = n + 1
    pieces.append(inner[start:])
    for piece in pieces:
        if piece.strip():
            yield from _leaves(prefix.strip() + piece.strip())
