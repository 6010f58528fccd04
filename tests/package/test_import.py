"""Things that `import pointstamp` must not do: the Spark side forks after it."""

import subprocess
import sys
import textwrap

import pytest


def run(program: str) -> str:
    """The standard output of a program in an interpreter of its own."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_starts_no_thread_and_leaves_no_file_open() -> None:
    assert (
        run("""
            import os, sys

            def threads():
                return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1

            def files():
                return sorted(os.listdir("/dev/fd"))

            before = threads(), files()
            import pointstamp
            assert (threads(), files()) == before, (threads(), files(), before)
            import threading
            assert threading.active_count() == 1
            print("checked", pointstamp.__version__)
        """).split()[0]
        == "checked"
    )


def test_import_opens_no_file_but_modules() -> None:
    opened = run("""
        import sys

        opened = []
        sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
        import pointstamp
        print(*opened, sep="\\n")
    """).split("\n")
    opened = [path for path in opened if path]
    assert any(path.endswith((".py", ".pyc")) for path in opened), "the audit hook saw nothing"
    assert [path for path in opened if not path.endswith((".py", ".pyc", ".so", ".pyd"))] == []


def test_import_loads_neither_arrow_nor_anything_slow() -> None:
    program = "import sys; before = {*sys.modules}; import pointstamp; print(*({*sys.modules} - before))"
    loaded = run(program).split()
    assert "pointstamp._core" in loaded
    heavy = {
        "pyarrow",
        "numpy",
        "pandas",
        "pyspark",
        "argparse",
        "asyncio",
        *("csv", "html", "json", "logging", "pathlib", "pickle", "shutil", "socket", "urllib.parse"),
    }
    assert heavy.isdisjoint(loaded)


def test_what_few_programs_use_is_loaded_with_its_first_use() -> None:
    loaded = run("""
        import sys
        import pointstamp as ps

        ps.example(lambda scope: scope.to_stream(range(3)).map(str).exchange(hash).capture()).extract()
        rarely = "collection keyed_stream arrow_stream".split()
        print(*(name for name in rarely if f"pointstamp.api.{name}" in sys.modules))
        rarely = "connectors runtime.interactive".split()
        print(*(name for name in rarely if f"pointstamp.{name}" in sys.modules))
        used = ps.Collection, ps.KeyedStream, ps.ArrowStream, ps.Interactive, ps.connectors.Source
        print(*(kind.__module__ for kind in used))
    """).split("\n")
    assert loaded[:2] == ["", ""]
    assert loaded[2].split() == [
        "pointstamp.api.collection",
        "pointstamp.api.keyed_stream",
        "pointstamp.api.arrow_stream",
        "pointstamp.runtime.interactive.session",
        "pointstamp.connectors.protocol",
    ]


def test_public_modules_are_attributes() -> None:
    said = run("""
        import sys
        import pointstamp as ps

        names = "cluster connectors graphs observability order progress testing".split()
        assert not {f"pointstamp.{name}" for name in ("graphs", "observability.log")} & {*sys.modules}
        print(*(getattr(ps, name).__name__ == f"pointstamp.{name}" for name in names))
        print(ps.graphs.connected_components.__name__)
    """)
    assert said.split() == ["True"] * 7 + ["connected_components"]


def test_a_name_that_is_not_there_is_an_error_with_its_name() -> None:
    import pointstamp

    with pytest.raises(AttributeError, match="'pointstamp' has no attribute 'Colection'") as raised:
        pointstamp.Colection  # type: ignore[attr-defined]  # noqa: B018
    assert raised.value.name == "Colection"
    assert raised.value.obj is pointstamp
    assert {*pointstamp.__all__} <= {*dir(pointstamp)}


def test_the_public_names_are_there() -> None:
    import pointstamp

    assert len(pointstamp.__all__) > 5
    assert sorted(pointstamp.__all__) == sorted(set(pointstamp.__all__))
    for name in pointstamp.__all__:
        assert hasattr(pointstamp, name), name
