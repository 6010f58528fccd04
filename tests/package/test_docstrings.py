"""The examples in the docstrings of the extension; pytest finds those of Python modules itself."""

import doctest
import inspect
from collections.abc import Iterator

import pytest

from pointstamp import _core


def examples() -> Iterator[doctest.DocTest]:
    """Every docstring of the extension module, its classes and their members, that holds an example."""
    parser = doctest.DocTestParser()
    for name, member in sorted(vars(_core).items()):
        documented = {name: member}
        if inspect.isclass(member):
            documented |= {f"{name}.{key}": value for key, value in vars(member).items()}
        for path, value in documented.items():
            text = inspect.getdoc(value) if hasattr(value, "__doc__") else None
            if text and ">>>" in text:
                yield parser.get_doctest(text, {}, f"pointstamp._core.{path}", None, None)


EXAMPLES = list(examples())


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example(example: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", [name for name in _core.__all__ if not name.startswith("_")])
def test_every_public_name_is_documented(name: str) -> None:
    member = getattr(_core, name)
    assert inspect.getdoc(member), name
    if inspect.isclass(member):
        public = {key: value for key, value in vars(member).items() if not key.startswith("_")}
        missing = [key for key, value in public.items() if not inspect.getdoc(value)]
        assert not missing, f"{name}: {missing}"
