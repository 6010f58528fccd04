"""The main program of a process that `execute(main, processes=)` started.

Two sockets join it to the program. Commands for the process come in on the first, and the results go out.
When the program ends, in any way, the second closes, and the process ends itself and its children.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import sys
from contextlib import suppress
from typing import Any

from pointstamp import _core
from pointstamp.config import Config
from pointstamp.errors import ClusterError, in_words, place_of
from pointstamp.runtime.execution import execute
from pointstamp.runtime.launcher.pickling import unpack
from pointstamp.runtime.launcher.stop_requests import let_in
from pointstamp.runtime.message_channel import MessageChannel, inherited, pickled


def begin(descriptor: int, port: int, end: int, more: tuple[int, ...]) -> None:
    """Runs the part of this process.

    Args:
        descriptor: The end of the channel to the program.
        port: The descriptor of the socket that listens on this process's address.
        end: The descriptor of the socket by which the process watches its parent.
        more: Descriptors that the function of the program uses.
    """
    for own in (descriptor, port, end, *more):
        os.set_inheritable(own, False)
    _core.end_with_parent(end)  # before any of the user's code, which an import may be
    let_in()
    with inherited(descriptor) as channel, socket.socket(fileno=port) as listener:
        _take_part(channel, listener)


def _take_part(channel: MessageChannel, listener: socket.socket) -> None:
    # Lines are written whole, also where PYTHONUNBUFFERED is set: several processes write to one stream.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None, where there is no such stream
            stream.reconfigure(line_buffering=True, write_through=False)
    try:
        # No limit: the end of the program closes the channel.
        task = channel.receive()
        sys.argv[:] = task["argv"]
        try:
            main = unpack(task["main"], task["named"])
        except BaseException as error:
            channel.send(_failure(error))
            return
        channel.send({"ready": True})
        # No limit: the same. All other processes are ready then.
        channel.receive()
    except (EOFError, ConnectionError):
        return  # the program has ended
    try:
        config = Config(**task["config"])
        results = execute(main, config=config, listener=listener, stall_report=task["stall_report"])
        answer = _results(results, task["config"])
    except BaseException as error:
        answer = pickled(_failure(error))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
    with suppress(ConnectionError):
        channel.send_pickled(answer)


def _results(results: list[Any], config: dict[str, Any]) -> bytes:
    """Returns the results of this process's workers; an unpicklable one raises an error with its worker."""
    try:
        return pickled({"results": results})
    except Exception as error:
        first = config["process"] * config["workers"]
        index = next((index for index, result in enumerate(results) if not _travels(result)), None)
        if index is None:  # each could be sent by itself
            which = f"the results of workers {first} to {first + len(results) - 1} together"
        else:
            which = f"the result of worker {first + index}, of type {type(results[index]).__name__},"
        refused = TypeError(
            f"{which} cannot be sent from its process: {error}. Return plain data, such as capture.extract()"
        )
        return pickled(_failure(refused))


def _travels(result: object) -> bool:
    try:
        pickled(result)
    except Exception:
        return False
    return True


def _failure(error: BaseException) -> dict[str, Any]:
    """An exception, and its text, for a program that cannot recreate it."""
    trace = error.__traceback__
    words = in_words(error, trace.tb_next if trace is not None else None)
    notes = [note for note in getattr(error, "__notes__", []) if isinstance(note, str)]
    packed = None
    with suppress(Exception):
        packed = pickled(error)
        if type(pickle.loads(packed)) is not type(error):  # it would not arrive either
            packed = None
    return {
        "error": packed,
        "words": words,
        "notes": notes,
        "place": place_of(error),
        "echo": isinstance(error, ClusterError),
        "interrupted": isinstance(error, KeyboardInterrupt),
    }
