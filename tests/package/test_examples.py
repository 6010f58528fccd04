"""Every program in examples/ runs to its end; each checks its own result and exits 1 if it is wrong."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import golden_graphs
from children import finished

EXAMPLES = Path(__file__).parents[2] / "examples"

ELSEWHERE = {"spark_pipeline.py": "tests/spark/test_pipeline.py"}
"""Programs that other tests run."""

# Arguments that make a program small enough for a test; {text} is a directory with some files of text.
GRAPH = ["--nodes", "300", "--edges", "500", "--workers", "3", "--check"]
ARGUMENTS: dict[str, list[str]] = {
    "barrier.py": ["--rounds", "500", "--workers", "3"],
    "bfs.py": GRAPH,
    "bfs_arrow.py": ["--nodes", "2000", "--edges", "5000"],
    "collatz.py": ["300"],
    "connected_components.py": GRAPH,
    "connected_components_arrow.py": ["--nodes", "2000", "--edges", "2500"],
    "diagnostic_path.py": [],
    "distinct.py": ["--records", "20000"],
    "flights_arrow.py": ["--days", "5", "--flights", "3000"],
    "flow_control.py": ["--times", "300", "--in-flight", "2"],
    "hash_join.py": ["--records", "3000", "--keys", "500"],
    "hello.py": ["--workers", "2"],
    "import_graph.py": ["--modules", "60", "--edits", "10"],
    "interactive_query.py": ["--people", "500", "--follows", "1500", "--questions", "10"],
    "live_dashboard.py": ["--orders", "300", "--seconds", "0"],
    "live_components.py": ["--people", "500", "--friendships", "550", "--changes", "100"],
    "open_loop.py": ["--rate", "500", "--seconds", "0.5"],
    "pagerank.py": GRAPH,
    "pagerank_arrow.py": ["--nodes", "2000", "--edges", "5000", "--rounds", "100"],
    "ping_pong.py": ["--trips", "1000"],
    "points_to.py": [],
    "sequence.py": ["--commands", "100", "--workers", "3"],
    "several_processes.py": ["-w", "2", "{text}", ".txt"],
    "union_find.py": GRAPH,
    "unordered_input.py": [],
    "wordcount.py": ["{text}", "--workers", "2", "--top", "5"],
}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    for name, words in [("one.txt", "to be or not to be\n" * 50), ("two.py", "# not to be\nbe = None\n")]:
        (tmp_path / name).write_text(words)
    return tmp_path


def test_every_example_is_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == ARGUMENTS.keys() | ELSEWHERE.keys()
    for name, test in ELSEWHERE.items():
        assert Path(name).stem in (EXAMPLES.parent / test).read_text()


def run(name: str, text: Path, seconds: float = 50, environment: Mapping[str, str] = os.environ) -> str:
    arguments = [argument.format(text=text) for argument in ARGUMENTS[name]]
    result = finished([sys.executable, "-W", "error", EXAMPLES / name, *arguments], seconds, environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


@pytest.mark.parametrize("name", ARGUMENTS)
def test_example(name: str, text: Path, tmp_path: Path) -> None:
    graphs = tmp_path / "graphs"
    assert run(name, text, environment=golden_graphs.recording(graphs)).strip()
    golden_graphs.compare(f"examples/{Path(name).stem}", graphs)


@pytest.mark.parametrize(
    ("arguments", "java", "message"),
    [
        (["--tasks", "0"], "here", "--tasks 0: it takes at least 1"),
        (["--scale", "0"], "here", "--scale 0: it takes at least 1"),
        (["--packages", "no_such,package_"], "here", "there is no .py file of no_such,package_ in"),
        ([], "", "Spark needs Java 17 or newer"),
    ],
)
def test_spark_pipeline_says_what_it_cannot_do(arguments: list[str], java: str, message: str) -> None:
    result = subprocess.run(
        [sys.executable, EXAMPLES / "spark_pipeline.py", *arguments],
        env={**os.environ, "JAVA_HOME": java, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_words_are_counted_on_two_processes(text: Path) -> None:
    program = f"{EXAMPLES / 'several_processes.py'}:main"
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pointstamp",
        "run",
        "-n",
        "2",
        program,
        str(text),
        ".txt",
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert [line.split() for line in result.stdout.splitlines()[:2]] == [["100", "be"], ["100", "to"]]
    assert "300 words in 1 files, by 2 workers." in result.stdout


def wordcount(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(EXAMPLES / "wordcount.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_wordcount_prints_the_top_and_the_sums(workers: int, text: Path) -> None:
    output = wordcount(text, "--workers", workers, "--top", 2).stdout
    assert re.findall(r"^ +(\d+)\. (\w+) +(\d+)$", output, re.MULTILINE) == [
        ("1", "be", "102"),
        ("2", "to", "101"),
    ]
    assert "305 words, 5 different ones, in 52 lines" in output


def test_wordcount_reads_the_files_of_a_suffix(text: Path) -> None:
    assert "5 words, 4 different ones, in 2 lines" in wordcount(text, "--suffix", ".py").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{text}/missing"], "missing is not a directory"),
        (["{text}", "--suffix", ".rst"], "there is no file that ends in .rst in"),
        (["{text}", "--workers", "0"], "--workers 0: it takes at least 1"),
        (["{text}", "--top", "-1"], "--top -1: it cannot be negative"),
    ],
)
def test_wordcount_says_what_it_cannot_do(arguments: list[str], message: str, text: Path) -> None:
    result = wordcount(*(argument.format(text=text) for argument in arguments))
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
