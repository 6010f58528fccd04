"""Dataflows of collections as terms: built with the library, and evaluated by plain Python from scratch.

A term is a tuple of the operator's name and its arguments. Records are pairs of small ints. A multiset is a
`Counter` in which nothing is 0. `evaluate` knows nothing of times: it is called with the inputs as they are
at one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from pointstamp import record

Term = tuple[Any, ...]
Multiset = Counter[Any]

TURNS = 12
"""The maximum number of turns of a loop. Terms whose loops take more are of no use as examples."""


class NoEndError(Exception):
    """A loop did not come to an end."""


Function = Callable[..., Any]

MAPS: list[Function] = [
    lambda r: (r[1], r[0]),
    lambda r: (r[0], (r[1] + 1) % 4),
    lambda r: ((r[0] + r[1]) % 4, r[1]),
    lambda r: (0, r[1]),
    lambda r: (r[0], min(r)),
]
FILTERS: list[Function] = [lambda r: r[0] <= r[1], lambda r: (r[0] + r[1]) % 2 == 0, lambda r: r[0] != 2]
FLATS: list[Function] = [lambda r: [r, (r[1], r[0])], lambda r: [(r[0], i) for i in range(r[1])]]
THRESHOLDS: list[Function] = [lambda r, n: n // 2, lambda r, n: min(n, r[1]), lambda r, n: -n if n > 0 else 1]
REDUCES: list[Function] = [
    lambda k, vs: [sum(v * n for v, n in vs) % 4],
    lambda k, vs: [v for v, n in vs if n > 0][:2],
    lambda k, vs: [len(vs) % 4] * 2,
]
JOINS: list[Function] = [lambda k, a, b: (k, (a + b) % 4), lambda k, a, b: (a, b), lambda k, a, b: (b, k)]
NATIVE = ["min", "max", "sum", "count", "top_2"]


INPUTS = 2
RECORDS = st.tuples(st.integers(0, 3), st.integers(0, 3))


@st.composite
def terms(draw: Any, depth: int = 3, variables: int = 0, loops: int = 2) -> Term:
    """A term with loops to depth 2."""
    if depth == 0:
        leaves = [("input", i) for i in range(INPUTS)] + [("variable", i) for i in range(variables)] * 2
        leaf: Term = draw(st.sampled_from(leaves))
        return leaf

    def sub(within: int = variables, left: int = loops) -> Term:
        part: Term = draw(terms(depth=depth - 1, variables=within, loops=left))
        return part

    kinds = ["map", "filter", "flat_map", "concat", "negate", "consolidate", "distinct", "threshold", "count"]
    kinds += ["join", "join", "join_pairs", "join_self", "semi", "anti", "reduce", "native", "native"]
    kinds += ["iterate", "iterate", "mutual"] if loops else []
    kind = draw(st.sampled_from(kinds))
    choices: dict[str, list[Any]] = {
        "map": MAPS,
        "filter": FILTERS,
        "flat_map": FLATS,
        "threshold": THRESHOLDS,
        "reduce": REDUCES,
    }
    choices |= {"join": JOINS, "join_self": JOINS, "native": NATIVE}
    chosen = [draw(st.integers(0, len(choices[kind]) - 1))] if kind in choices else []
    if kind == "iterate":
        return ("iterate", sub(left=loops - 1), sub(variables + 1, loops - 1))
    if kind == "mutual":
        starts = [sub(left=0), sub(left=0)]
        return ("mutual", *starts, sub(variables + 2, 0), sub(variables + 2, 0))
    two = kind in ("concat", "join", "join_pairs", "semi", "anti")
    return (kind, *chosen, *(sub() for _ in range(2 if two else 1)))


# ------------------------------------------------------------ with the library


def build(term: Term, inputs: list[Any], variables: list[Any]) -> Any:
    """Returns the term as a collection. `variables` are those of the loops around it, in its scope."""
    name, *args = term
    if name == "input":
        return inputs[args[0]]
    if name == "variable":
        return variables[args[0]]
    if name in ("iterate", "mutual"):
        return _build_loop(term, inputs, variables)
    subs = [build(sub, inputs, variables) for sub in args if isinstance(sub, tuple)]
    first = subs[0]
    choice = next((arg for arg in args if isinstance(arg, int)), 0)
    match name:
        case "map":
            return first.map(MAPS[choice])
        case "filter":
            return first.filter(FILTERS[choice])
        case "flat_map":
            return first.flat_map(FLATS[choice])
        case "concat":
            return first.concat(subs[1])
        case "negate":
            return first.negate()
        case "consolidate":
            return first.consolidate()
        case "distinct":
            return first.distinct()
        case "threshold":
            return first.threshold(THRESHOLDS[choice])
        case "count":
            return first.value_counts().map(lambda pair: (pair[0][0], pair[1] % 4))
        case "join":
            return first.join(subs[1], JOINS[choice])
        case "join_pairs":
            return first.join(subs[1]).map(lambda pair: (pair[0], (pair[1][0] + pair[1][1]) % 4))
        case "join_self":
            arranged = first.arrange()
            return arranged.join(arranged, JOINS[choice]).concat(arranged.to_collection())
        case "semi":
            return first.join(subs[1].map((record[1], 0)), how="semi")
        case "anti":
            return first.join(subs[1].map(record[1]).map((record, 0)), how="anti")
        case "reduce":
            return first.map_groups(REDUCES[choice])
        case "native":
            kind = NATIVE[choice]
            result = first.top_k(2) if kind == "top_2" else getattr(first, kind)()
            return result.map(lambda pair: (pair[0], pair[1] % 4))
    raise AssertionError(name)


def _build_loop(term: Term, inputs: list[Any], variables: list[Any]) -> Any:
    bodies = term[1:]
    scope = inputs[0].scope
    count = len(bodies) // 2
    initial = [build(body, inputs, variables) for body in bodies[:count]]
    with scope.iterative() as inner:
        entered = [collection.enter(inner) for collection in inputs]
        around = [collection.enter(inner) for collection in variables]
        own = [inner.variable(start.enter(inner)) for start in initial]
        within = around + [variable.collection for variable in own]
        results = [build(body, entered, within).distinct() for body in bodies[count:]]
        for variable, result in zip(own, results, strict=True):
            variable.set(result)
        return results[0].leave()


# ------------------------------------------------------------ from scratch


def evaluate(term: Term, inputs: list[Multiset], variables: list[Multiset]) -> Multiset:
    """Evaluates the term on inputs that do not change. Raises `NoEndError` where a loop does not end soon."""
    result = _evaluate(term, inputs, variables)
    return Counter({record: count for record, count in result.items() if count != 0})


def _evaluate(term: Term, inputs: list[Multiset], variables: list[Multiset]) -> Multiset:
    name, *args = term
    if name == "input":
        return inputs[args[0]]
    if name == "variable":
        return variables[args[0]]
    if name in ("iterate", "mutual"):
        count = len(args) // 2
        own = [evaluate(body, inputs, variables) for body in args[:count]]
        for _ in range(TURNS):
            new = [
                Counter({r: 1 for r, n in evaluate(body, inputs, variables + own).items() if n > 0})
                for body in args[count:]
            ]
            if new == own:
                return own[0]
            own = new
        raise NoEndError
    subs = [evaluate(sub, inputs, variables) for sub in args if isinstance(sub, tuple)]
    first = subs[0]
    choice = next((arg for arg in args if isinstance(arg, int)), 0)
    out: Multiset = Counter()
    match name:
        case "map":
            for r, n in first.items():
                out[MAPS[choice](r)] += n
        case "filter":
            return Counter({r: n for r, n in first.items() if FILTERS[choice](r)})
        case "flat_map":
            for r, n in first.items():
                for made in FLATS[choice](r):
                    out[made] += n
        case "concat":
            for r, n in [*first.items(), *subs[1].items()]:
                out[r] += n
        case "negate":
            return Counter({r: -n for r, n in first.items()})
        case "consolidate":
            return first
        case "distinct":
            return Counter({r: 1 for r, n in first.items() if n > 0})
        case "threshold":
            return Counter({r: THRESHOLDS[choice](r, n) for r, n in first.items()})
        case "count":
            for r, n in first.items():
                out[r[0], n % 4] += 1
        case "join" | "join_pairs" | "join_self":
            other = subs[1] if len(subs) > 1 else first
            f = JOINS[0 if name == "join_pairs" else choice]
            for (k, a), n in first.items():
                for (k2, b), m in other.items():
                    if k == k2:
                        out[f(k, a, b)] += n * m
            if name == "join_self":
                for r, n in first.items():
                    out[r] += n
        case "semi" | "anti":
            present: Multiset = Counter()
            for r, n in subs[1].items():
                present[r[1]] += n
            keys = {k for k, n in present.items() if n > 0}
            return Counter({r: n for r, n in first.items() if (r[0] in keys) == (name == "semi")})
        case "reduce" | "native":
            groups: dict[Any, list[tuple[Any, int]]] = defaultdict(list)
            for (k, v), n in sorted(first.items()):
                if n > 0 or name == "native":
                    groups[k].append((v, n))
            for k, values in groups.items():
                results = REDUCES[choice](k, values) if name == "reduce" else _native(NATIVE[choice], values)
                for result in results:
                    out[k, result if name == "reduce" else result % 4] += 1
        case _:
            raise AssertionError(name)
    return out


def _native(kind: str, values: list[tuple[Any, int]]) -> list[Any]:
    there = [v for v, n in values for _ in range(n)]
    match kind:
        case "min":
            return there[:1]
        case "max":
            return there[-1:]
        case "sum":
            return [sum(v * n for v, n in values)]
        case "count":
            total = sum(n for _, n in values)
            return [total] if total else []
        case "top_2":
            return there[-2:]
    raise AssertionError(kind)
