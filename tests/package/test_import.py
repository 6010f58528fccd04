"""What `import pointstamp` must not do: the Spark side forks after it."""

import subprocess
import sys
import textwrap


def run(program: str) -> str:
    """The standard output of a program in an interpreter of its own."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=150,
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
    loaded = run("import sys, pointstamp; print(*sys.modules, sep='\\n')").split()
    assert "pointstamp._core" in loaded
    heavy = {
        "pyarrow",
        "numpy",
        "pandas",
        "pyspark",
        "argparse",
        "asyncio",
    }
    assert heavy.isdisjoint(loaded)


def test_the_public_names_are_there() -> None:
    import pointstamp

    assert len(pointstamp.__all__) > 5
    assert sorted(pointstamp.__all__) == sorted(set(pointstamp.__all__))
    for name in pointstamp.__all__:
        assert hasattr(pointstamp, name), name
