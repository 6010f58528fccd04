"""Values that a function may return in place of its own, by its return type: cargo-mutants' choice."""

from __future__ import annotations

import re
from itertools import product

from tree_sitter import Node

UNSIGNED = {"u8", "u16", "u32", "u64", "u128", "usize"}
SIGNED = {"i8", "i16", "i32", "i64", "i128", "isize"}
FLOATS = {"f32", "f64"}
POINTERS = {"Box", "Cell", "RefCell", "Arc", "Rc", "Mutex"}
COLLECTIONS = {"BinaryHeap", "BTreeSet", "HashSet", "LinkedList", "VecDeque"}
MAPS = {"BTreeMap", "HashMap"}

DEFAULT = ["Default::default()"]
ITERATOR = re.compile(r"impl (\w+ \+ )?\w*Iterator<")
EMPTY = "::std::iter::empty()"
"""In place of any iterator: not an expression of its type, for a function has one."""


def text(node: Node) -> str:
    """The source of a node."""
    return (node.text or b"").decode()


def of_return_type(node: Node | None) -> list[str]:
    """Expressions to return; none where there is nothing to choose from, as for `!`."""
    return ["()"] if node is None else _of(node)


def _of(node: Node) -> list[str]:
    match node.type:
        case "primitive_type" | "type_identifier":
            return _of_name(text(node))
        case "generic_type":
            return _of_generic(node)
        case "array_type":
            length = node.child_by_field_name("length")
            return (
                _slices(node) if length is None else [f"[{e}; {text(length)}]" for e in _of(_element(node))]
            )
        case "reference_type":
            return _of_reference(node)
        case "unit_type":
            return ["()"]
        case "tuple_type":
            parts = [_of(part) for part in node.named_children]
            return [f"({', '.join(chosen)}{',' * (len(chosen) == 1)})" for chosen in product(*parts)]
        case "bounded_type":
            return next((_of(part) for part in node.named_children if part.type == "abstract_type"), DEFAULT)
        case "abstract_type":
            return [EMPTY] if ITERATOR.match(text(node)) else []
        case "never_type":
            return []
        case _:
            return DEFAULT


def _of_name(name: str) -> list[str]:
    if name == "bool":
        return ["true", "false"]
    if name == "String":
        return ["String::new()", '"xyzzy".into()']
    if name in UNSIGNED:
        return ["0", "1"]
    if name in SIGNED:
        return ["0", "1", "-1"]
    if name in FLOATS:
        return ["0.0", "1.0", "-1.0"]
    return ["Ok(Default::default())"] if name == "Result" else DEFAULT


def _of_generic(node: Node) -> list[str]:
    kind = node.child_by_field_name("type")
    arguments = node.child_by_field_name("type_arguments")
    assert kind is not None
    assert arguments is not None
    name = text(kind).rpartition("::")[2]
    types = [part for part in arguments.named_children if part.type not in ("lifetime", "type_binding")]
    if not types:
        return DEFAULT
    if name in MAPS and len(types) == 2:
        entries = [f"{name}::from_iter([({k}, {v})])" for k, v in product(_of(types[0]), _of(types[1]))]
        return [f"{name}::new()", *entries]
    inner = _of(types[0])
    match name:
        case "Result":
            return [f"Ok({value})" for value in inner]
        case "Option":
            return ["None", *(f"Some({value})" for value in inner)]
        case "Vec":
            return ["vec![]", *(f"vec![{value}]" for value in inner)]
        case "Cow":
            return [
                made
                for value in inner
                for made in (f"Cow::Borrowed({value})", f"Cow::Owned({value}.to_owned())")
            ]
    if len(types) > 1:
        return DEFAULT
    if name in POINTERS:
        return [f"{name}::new({value})" for value in inner]
    if name in COLLECTIONS:
        return [f"{name}::new()", *(f"{name}::from_iter([{value}])" for value in inner)]
    ways = ("from_iter([{}])", "new({})", "from({})")
    return [f"{name}::new()", *(f"{name}::{way.format(value)}" for value in inner for way in ways)]


def _of_reference(node: Node) -> list[str]:
    target = node.child_by_field_name("type")
    assert target is not None
    if text(target) == "str":
        return ['""', '"xyzzy"']
    if target.type == "array_type" and target.child_by_field_name("length") is None:
        return _slices(target)
    return [f"Box::leak(Box::new({value}))" for value in _of(target)]


def _slices(node: Node) -> list[str]:
    return ["Vec::leak(Vec::new())", *(f"Vec::leak(vec![{value}])" for value in _of(_element(node)))]


def _element(node: Node) -> Node:
    element = node.child_by_field_name("element")
    assert element is not None
    return element
