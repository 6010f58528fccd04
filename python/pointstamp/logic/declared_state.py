"""State of operators that are written in Python: how checkpoints take and restore it.

An operator declares nothing, that it keeps no state (`stateless`), or an object with two methods:

- ``snapshot()`` returns pairs ``(key, state)``: all that it keeps. A state may hold capabilities.
- ``restore(pairs, version)`` takes such pairs back, for the keys that this worker owns now.

A program says it by ``state=``: "none", or a class of such objects (`declaration`).

State by key is divided by key group, so that any number of workers can resume. State that is not by key needs
as many workers as before; its pairs have any keys.

Operators of the library that hold capabilities for delayed records have a form of their own: `Waiting`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from pointstamp._core import Capability, Piece, less_equal, worker_of_key
from pointstamp._validation import program_line
from pointstamp.errors import CheckpointError, GraphError, add_note
from pointstamp.pacts import Broadcast, ByKey, Pact, Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import TypeAlias

    from pointstamp import _core
    from pointstamp.logic.planned import PlannedOperator
    from pointstamp.logic.state_chain import StateChain
    from pointstamp.lowering.scope import BuildingScope

    Declares: TypeAlias = Callable[[PlannedOperator], None]
    Declared: TypeAlias = "Callable[[], Snapshots] | Literal['none'] | None"

__all__ = [
    "Declared",
    "Declares",
    "Division",
    "Requests",
    "Restored",
    "Snapshots",
    "Spilling",
    "Stateless",
    "Waiting",
    "WaitingByKey",
    "checked_state",
    "declaration",
    "keep",
    "keep_waiting",
    "undeclared",
]

Division = Literal["groups", "workers", "parts"]
"""Divides state among workers: by key group, not at all, or any worker can have any piece."""

_VERSION = 1
"""The version of the state of the library's operators."""


class Snapshots(Protocol):
    """State that checkpoints can take and give back."""

    def snapshot(self) -> Iterable[tuple[Any, Any]]:
        """Returns all that is kept, as pairs of a key and a state."""

    def restore(self, pairs: Iterable[tuple[Any, Any]], version: int) -> None:
        """Takes back the result of `snapshot`, of the version that the class had then."""


class Requests(Protocol):
    """Notifications that an operator waits for: a part of its state that is not by key."""

    def held(self) -> list[Capability]:
        """Returns the capability of each request."""

    def take_back(self, held: list[Capability]) -> None:
        """Makes the requests again."""


class Waiting(Protocol):
    """State of an operator of the library, in a form of its own.

    Attributes:
        division: Its division among workers.
    """

    division: Division

    def taken(self) -> Any:
        """Returns all that is kept, as data that can be pickled. It may hold capabilities."""

    def give_back(self, taken: Any, restored: Restored) -> None:
        """Takes back the result of `taken` on one worker: of state by group, this worker's part.

        It is called for each piece of this worker; for state by group, for the pieces of all workers.
        """


@runtime_checkable
class WaitingByKey(Waiting, Protocol):
    """The state of an operator of which a part is by key: checkpoints write the changes of that part.

    `taken` leaves that part out.
    """

    def keys(self) -> Collection[Any]:
        """Returns the keys of which something is kept.

        An iterator over them has those that there were when it was made.
        """

    def entries(self, keys: Collection[Any]) -> Iterable[tuple[Any, Any]]:
        """Returns each of some keys with all that is kept of it, as data that can be pickled.

        A key of which nothing is kept comes with None.
        """

    def take_back(self, entries: list[tuple[Any, Any]]) -> None:
        """Takes back some entries of keys of this worker. Of two entries of a key the later holds."""

    def has_all(self) -> None:
        """Notes that all entries were taken back."""

    def follow(self, chain: StateChain) -> None:
        """Reports the keys that change to a chain, after this call."""


@runtime_checkable
class Spilling(Protocol):
    """State of an operator that can leave memory."""

    def spill_to(self, disk: _core.Disk) -> None:
        """Has state go there that memory has no room for. Called once, before there is any state."""


class Restored:
    """The state of an operator in the checkpoint from which the computation resumes.

    Attributes:
        name: The operator's name.
        pieces: Its pieces; those of all workers, where their number has changed and the state is by key.
        index: This worker's number.
        peers: The number of workers.
    """

    def __init__(
        self,
        name: str,
        pieces: list[Piece],
        held: list[Capability],
        begun: list[Capability],
        index: int,
        peers: int,
    ) -> None:
        self.name = name
        self.pieces = pieces
        self._held = held
        self._begun = begun
        self.index = index
        self.peers = peers

    def is_mine(self, key: Any) -> bool:
        """Whether a key is this worker's."""
        return self.peers == 1 or worker_of_key(key, self.peers) == self.index

    def capability(self, output: int, time: Any) -> Capability:
        """Returns a capability that the operator held.

        Raises:
            CheckpointError: If it held none from which this one can be made.
        """
        for held in (*self._held, *self._begun):
            if held._output == output and not held._revoked and less_equal(held.time, time):
                return held.delayed(time)
        raise CheckpointError(
            f"operator '{self.name}' held no capability of output {output} for time {time} at the "
            "checkpoint: restore with the program that made the checkpoint"
        )

    def loads(self, written: Piece) -> Any:
        """Reads a pickle of `dumps`, capabilities included."""
        from pointstamp.logic.pickled_state import loads

        return loads(written, self)

    def loads_versioned(self, written: Piece, known: int) -> list[Any]:
        """Reads a pickle of `dumps` of a tuple that begins with the version of its form; returns the rest.

        Args:
            written: The pickle.
            known: The latest version that can be read.

        Raises:
            CheckpointError: If the version is later.
        """
        version, *rest = self.loads(written)
        contents: list[Any] = rest
        if version > known:
            raise CheckpointError(
                f"the state of operator '{self.name}' has the version {version} in the checkpoint, and this "
                f"version of pointstamp knows versions up to {known}: use the one that wrote it, or a newer "
                "one"
            )
        return contents


def keep(
    builder: _core.Builder,
    name: str,
    state: Snapshots,
    restored: Restored | None,
    *,
    by_key: bool,
    place: tuple[int, int],
    version: int = 1,
    requests: Requests | None = None,
) -> None:
    """Has checkpoints take and give back the state of an operator.

    Args:
        builder: The engine's builder of the operator.
        name: The operator's name.
        state: Its state.
        restored: The state of the operator; None where the computation begins.
        by_key: Whether its keys are those that distribute its records to workers.
        place: The number of the worker, and the number of workers.
        version: The version of the pairs.
        requests: The notifications that it waits for.

    Raises:
        CheckpointError: If the state cannot be taken back.
    """
    if restored is not None:
        _give_back(name, state, restored, by_key, version, requests)

    def take() -> list[Piece]:
        pairs = list(state.snapshot())
        if by_key:
            _check_keys(name, pairs, *place)
        from pointstamp.logic.pickled_state import dumps

        return [dumps(name, (version, pairs, [] if requests is None else requests.held()))]

    builder.keeps("groups" if by_key else "workers", take)


def keep_waiting(
    builder: _core.Builder, name: str, state: Waiting, restored: Restored | None, place: tuple[int, int]
) -> None:
    """Has checkpoints take and give back the state of an operator of the library.

    Its pieces are, of each worker, a head with the number of pieces behind it, and the pieces of a chain.

    Args:
        builder: The engine's builder of the operator.
        name: The operator's name.
        state: Its state.
        restored: The state of the operator; None where the computation begins.
        place: The number of the worker, and the number of workers.

    Raises:
        CheckpointError: If the state cannot be taken back.
    """
    chain = None
    if isinstance(state, WaitingByKey):
        from pointstamp.logic.state_chain import StateChain

        chain = StateChain(name, state, builder.disk(name))
    if restored is not None:
        _give_back_waiting(name, state, restored, place, chain)
    if isinstance(state, WaitingByKey) and chain is not None:
        state.follow(chain)

    def take() -> list[Piece]:
        from pointstamp.logic.pickled_state import dumps

        links = [] if chain is None else chain.take()
        return [dumps(name, (_VERSION, place, len(links), state.taken())), *links]

    builder.keeps(state.division, take)


def _give_back_waiting(
    name: str, state: Waiting, restored: Restored, place: tuple[int, int], chain: StateChain | None
) -> None:
    from pointstamp.logic.state_chain import read_link

    def take_back(entries: list[tuple[Any, Any]]) -> None:
        assert isinstance(state, WaitingByKey)
        state.take_back([pair for pair in entries if restored.is_mine(pair[0])])

    pieces = iter(restored.pieces)
    for piece in pieces:
        of, count, taken = restored.loads_versioned(piece, _VERSION)
        state.give_back(taken, restored)
        links = list(islice(pieces, count))
        if len(links) < count or (count and chain is None):
            raise CheckpointError(
                f"the checkpoint has other pieces of operator '{name}' than its state says: resume from "
                "another one with Checkpoint(at=)"
            )
        sizes = [read_link(link, take_back) for link in links]
        # The pieces of other workers have keys that are not this worker's, as they were then.
        if chain is not None and of == place:
            chain.resume(links, sizes)
    if isinstance(state, WaitingByKey):
        state.has_all()


def _check_keys(name: str, pairs: list[Any], index: int, peers: int) -> None:
    """Refuses pairs that are none, keys twice, and keys of other workers."""
    keys = set()
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise CheckpointError(
                f"snapshot() of operator '{name}' returns pairs (key, state), and gave {pair!r:.100}"
            )
        key = pair[0]
        if key in keys:
            raise CheckpointError(f"snapshot() of operator '{name}' returned the key {key!r:.100} twice")
        keys.add(key)
        if peers > 1 and (owner := worker_of_key(key, peers)) != index:
            raise CheckpointError(
                f"snapshot() of operator '{name}' on worker {index} returned the key {key!r:.100}, which is "
                f"worker {owner}'s: the keys of a snapshot are those that the operator's pact, ByKey, gives"
            )


def _give_back(
    name: str, state: Snapshots, restored: Restored, by_key: bool, known: int, requests: Requests | None
) -> None:
    by_version: dict[int, list[tuple[Any, Any]]] = {}
    keys = set()
    for piece in restored.pieces:
        version, pairs, held = restored.loads(piece)
        if version > known:
            raise CheckpointError(
                f"the state of operator '{name}' has the version {version} in the checkpoint, and the "
                f"program's has the version {known}: run the program that made the checkpoint, or a later one"
            )
        if by_key:
            pairs = [pair for pair in pairs if restored.is_mine(pair[0])]
            for key, _ in pairs:
                if key in keys:
                    raise CheckpointError(
                        f"the checkpoint has the key {key!r:.100} of operator '{name}' twice: resume from "
                        "another one with Checkpoint(at=)"
                    )
                keys.add(key)
        by_version.setdefault(version, []).extend(pairs)
        if requests is not None:
            requests.take_back(held)
    for version, pairs in by_version.items():
        try:
            state.restore(pairs, version)
        except Exception as error:
            add_note(error, f"while the state of operator '{name}' was restored")
            raise


# ---------------------------------------------------------------- custom operators


class Stateless:
    """The state of an operator that keeps nothing but notifications that it waits for."""

    def snapshot(self) -> list[tuple[Any, Any]]:
        """Returns nothing."""
        return []

    def restore(self, pairs: Iterable[tuple[Any, Any]], version: int) -> None:
        """Takes nothing back."""


def undeclared(scope: BuildingScope, name: str, cure: str) -> None:
    """Refuses an operator that does not declare its state, where checkpoints are made.

    Args:
        scope: Where it is.
        name: The operator's name.
        cure: The code to write.

    Raises:
        GraphError: It names the operator and its line.
    """
    if scope._engine.recording is not None:
        line = program_line()
        raise GraphError(
            f"operator '{name}' ({line.file}:{line.number}) does not say what its state is, and checkpoints "
            f"are on: {cure}"
        )


_CURE = (
    "give it state=C, where C is a class with snapshot() and restore(), whose object its constructor finds "
    'as info.state; or state="none" where it keeps nothing from one call to the next'
)


def declaration(
    scope: BuildingScope,
    name: str,
    state: Declared,
    pacts: Sequence[type[Pact]],
    *,
    requests: Requests | None = None,
    cure: str = _CURE,
) -> Declares:
    """Returns a function that declares the state of a custom operator, before it is constructed.

    Args:
        scope: Where it is.
        name: The operator's name.
        state: The program's declaration: a class of states, "none", or nothing.
        pacts: The classes of its inputs' pacts. State is by key where an input has `ByKey`, and none
            exchanges records otherwise.
        requests: The notifications that it waits for.
        cure: The code to write where the program declares nothing.

    Raises:
        GraphError: If the program says nothing, and checkpoints are made.
        TypeError: If the state is neither.
    """
    made: Any = state
    if made is None:
        undeclared(scope, name, cure)
        return lambda core: None
    if isinstance(made, str) and made == "none":
        if requests is None:
            return lambda core: core.stateless()
        make: Callable[[], Any] = Stateless
    elif callable(made):
        make = made
    else:
        raise TypeError(
            f"the state of operator '{name}' is a class with snapshot() and restore(), or \"none\", and not "
            f"{made!r:.100}"
        )
    keyed = any(issubclass(pact, ByKey) for pact in pacts)
    by_key = keyed and all(issubclass(pact, ByKey | Pipeline | Broadcast) for pact in pacts)

    def declare(core: PlannedOperator) -> None:
        kept = make()
        version = checked_state(name, kept)
        made = core.keeps(lambda: kept, by_key=by_key, version=version, requests=requests)
        core.state = None if isinstance(made, Stateless) else made

    return declare


def checked_state(name: str, state: Any) -> int:
    """Returns the version of a custom state, which must have `snapshot` and `restore`.

    Raises:
        TypeError: If it is none.
    """
    for method in ("snapshot", "restore"):
        if not callable(getattr(state, method, None)):
            raise TypeError(
                f"the state of operator '{name}', {state!r:.100}, has no {method}(): a state has snapshot(), "
                "which returns pairs (key, state), and restore(pairs, version), which takes them back"
            )
    version = getattr(state, "version", 1)
    if isinstance(version, bool) or not isinstance(version, int):
        raise TypeError(
            f"the version of the state of operator '{name}' is an int, and is {version!r:.100}: it is raised "
            "when snapshot() returns something else than before"
        )
    return version
