"""Builds a jar of GraphFrames from its source, with the Scala compiler that PySpark brings.

    python benches/python/build_graphframes.py SOURCE JAR

SOURCE is a folder with the source of GraphFrames (github.com/graphframes/graphframes, 0.9 or later, whose
GraphX is its own), JAR the file that is written, for `bench_spark.py --graphframes JAR`. It needs `java`,
`javac` and `jar` of a JDK, that of JAVA_HOME where it is set. It takes a minute, and 2 GB of memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

PARTS = ("graphx/src/main", "core/src/main/scala", "core/src/main/java", "core/src/main/scala-spark-4")
"""The folder of the source, without the examples of Java."""


def sources(top: Path, suffix: str) -> list[str]:
    """The source files of a language."""
    found = [path for part in PARTS for path in sorted((top / part).rglob(f"*{suffix}"))]
    if suffix == ".java":
        found = [path for path in found if path.name != "package-info.java" and "examples" not in path.parts]
    return [str(path) for path in found]


def tool(name: str) -> str:
    """A program of the JDK."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / name) if home else name


def build(top: Path, jar: Path) -> None:
    """Compiles what is in Scala, which needs what is in Java only by name, and then that.

    Raises:
        SystemExit: If the folder has no source of GraphFrames, or it does not compile.
    """
    scala, java = sources(top, ".scala"), sources(top, ".java")
    if not scala:
        raise SystemExit(f"{top} has no source of GraphFrames: there is nothing in {', '.join(PARTS)}")
    jars = str(Path(pyspark.__path__[0]) / "jars" / "*")
    with tempfile.TemporaryDirectory() as made:
        compiler = [tool("java"), "-Xmx2g", "-Xss8m", "-cp", jars, "scala.tools.nsc.Main"]
        commands = [
            [*compiler, "-nowarn", "-Xsource:3", "-d", made, "-classpath", jars, *scala, *java],
            [tool("javac"), "-nowarn", "-cp", os.pathsep.join([made, jars]), "-d", made, *java],
            [tool("jar"), "cf", str(jar), "-C", made, "."],
        ]
        for command in commands:
            done = subprocess.run(command, check=False)
            if done.returncode:
                raise SystemExit(f"{Path(command[0]).name} failed with exit code {done.returncode}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a folder with the source of GraphFrames")
    parser.add_argument("jar", type=Path, help="the file that is written")
    options = parser.parse_args()
    build(options.source, options.jar.resolve())
    print(f"{options.jar}: {options.jar.stat().st_size / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
