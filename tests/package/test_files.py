"""Writers write to plain files of one name, and follow no link in their place."""

import ast
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import pointstamp as ps
from pointstamp._files import make_folder, open_plain, written_whole

PACKAGE = Path(ps.__file__).parent


def test_a_plain_file_is_made_and_emptied(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    for text in (b"longer", b"short"):
        with open_plain(path) as file:
            file.write(text)
        assert path.read_bytes() == text
    with open_plain(path, empty=False) as file:
        file.write(b"SH")
    assert path.read_bytes() == b"SHort"


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
@pytest.mark.parametrize("kind", ["symbolic link", "dangling link", "hard link", "pipe", "folder"])
def test_nothing_else_is_opened(tmp_path: Path, kind: str) -> None:
    precious, path = tmp_path / "precious", tmp_path / "path"
    precious.write_text("precious")
    make: dict[str, Callable[[], None]] = {
        "symbolic link": lambda: path.symlink_to(precious),
        "dangling link": lambda: path.symlink_to(tmp_path / "missing"),
        "hard link": lambda: os.link(precious, path),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    with pytest.raises(OSError) as refused:
        open_plain(path)
    assert refused.value.filename == str(path)
    assert precious.read_text() == "precious"
    assert not (tmp_path / "missing").exists()


def test_a_file_written_whole_is_there_or_not(tmp_path: Path) -> None:
    path = tmp_path / "whole"
    path.write_text("before")
    with pytest.raises(KeyError), written_whole(path) as file:
        file.write(b"half")
        raise KeyError
    assert [other.name for other in tmp_path.iterdir()] == ["whole"]
    assert path.read_text() == "before"
    with written_whole(path) as file:
        file.write(b"after")
    assert path.read_text() == "after"
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_a_folder_is_no_link(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic link"):
        make_folder(tmp_path / "link")


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_a_capture_is_not_written_through_a_link(tmp_path: Path) -> None:
    precious, path = tmp_path / "precious", tmp_path / "capture"
    precious.write_text("precious")
    path.symlink_to(precious)
    for overwrite in (False, True):
        with pytest.raises(OSError, match=r"capture"):
            ps.example(
                lambda scope: scope.to_stream([1]).capture_into(ps.EventWriter(path, overwrite=overwrite))
            )
    assert precious.read_text() == "precious"


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_a_parquet_sink_writes_through_no_link(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pointstamp.connectors import ParquetSink

    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    folder.mkdir()
    schema = pa.schema([("x", pa.int64())])

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([{"x": 1}]).to_arrow(schema).write(ParquetSink(folder))
        worker.run()

    hidden = []

    def planted(path: os.PathLike[str] | str) -> None:
        hidden.append(Path(path))
        Path(path).symlink_to(elsewhere)
        make_folder(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pointstamp.connectors.parquet.make_folder", planted)
        with pytest.raises(OSError, match="symbolic link"):
            ps.execute(main)
    assert hidden
    assert list(elsewhere.iterdir()) == []


def opened_to_write(tree: ast.AST) -> list[int]:
    """Lines that open a file to write by anything but `_files`."""
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        words = [
            arg.value
            for arg in [*node.args, *(word.value for word in node.keywords)]
            if isinstance(arg, ast.Constant)
        ]
        modes = [
            word for word in words if isinstance(word, str) and len(word) <= 3 and set(word) & set("wax+")
        ]
        if name in ("write_text", "write_bytes", "mkstemp", "NamedTemporaryFile") or (
            name in ("open", "fdopen") and any(set(mode) <= set("wax+bt") for mode in modes)
        ):
            lines.append(node.lineno)
    return lines


ALLOWED = {
    "connectors/journal.py": "a journal beside checkpoints, created only where it does not exist",
    "_files.py": "the helper",
    "runtime/bootstrap/secret.py": "a file of mode 600 linked into its place: the first to come wins",
}


def test_files_are_opened_to_write_in_one_place() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        lines = opened_to_write(ast.parse(path.read_text()))
        if lines:
            found[path.relative_to(PACKAGE).as_posix()] = lines
    assert found.keys() == ALLOWED.keys(), found
