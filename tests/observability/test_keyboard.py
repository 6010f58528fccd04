"""The live page in a browser: its keys, folded scopes, and links that keep clear of boxes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from browser import Browser, needs_browser
from pointstamp.observability.dashboard import Page, as_json
from pointstamp.observability.log_replay import Replay

pytestmark = needs_browser

ROUNDS, RECORDS = 3, 40

Build = Callable[[ps.Scope, "ps.Stream[int]"], Any]


def logged(folder: Path, build: Build) -> dict[str, Any]:
    """The last moment of a run of a dataflow."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("shown") as scope:
            numbers, stream = scope.new_input()
            probe = build(scope, stream).probe()
        for time in range(ROUNDS):
            numbers.send_batch(range(RECORDS))
            numbers.advance_to(time + 1)
            worker.step_while(lambda: probe.less_than(numbers.time))

    ps.execute(main, config=ps.Config(log=folder))
    return Replay(folder).states[-1]


def parts(scope: ps.Scope, stream: "ps.Stream[int]") -> Any:
    """A few scopes side by side, long chains in them, and a loop."""
    ends = []
    for number in range(4):
        with scope.region(f"part {number}") as part:
            inner = stream.enter(part)
            for step in range(9):
                inner = inner.exchange(lambda x: x, name=f"step {number}.{step}")
            ends.append(inner.leave())
    joined = ends[0].concat(*ends[1:], stream)
    with scope.iterative("Turns") as turns:
        handle, back = turns.loop_variable()
        again, out = joined.enter(turns).concat(back).branch_when(lambda time: time[-1] >= 2)  # type: ignore[index]
        again.connect_loop(handle)
    return out.leave()


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[tuple[Browser, dict[str, Any]]]:
    """A browser on the page, which shows a state as if the dataflow ran."""
    state = logged(tmp_path / "log", parts)
    answers = {
        "/about": lambda query: as_json({"moments": 0}),
        "/state": lambda query: as_json(state),
        "/explain": lambda query: ("text/plain", "nothing"),
    }
    with Page("127.0.0.1", 0, answers) as page, Browser(tmp_path / "browser") as browser:
        browser.open(page.url)
        yield browser, state


VIEW = "document.querySelector('#world').getAttribute('transform')"

SCOPES = "[...document.querySelectorAll('.op')].filter(one => one.textContent.includes('▸')).length"

OPERATORS = "document.querySelectorAll('.op').length"


CROSSED = """
[...document.querySelectorAll('.link')].flatMap(link => {
  const {from, to} = link.dataset, found = [];
  const boxes = [...document.querySelectorAll('.op')].filter(one => ![from, to].includes(one.dataset.id));
  for (let at = 0; at < link.getTotalLength(); at += 3) {
    const {x, y} = link.getPointAtLength(at);
    for (const box of boxes) {
      const {x: left, y: top, width, height} = box.querySelector('.body').getBBox();
      const inside = x > left && x < left + width && y > top && y < top + height;
      if (inside) found.push(`${from} to ${to} crosses ${box.dataset.id}`);
    }
  }
  return found;
})"""


def test_keys_do_what_the_page_says(shown: tuple[Browser, dict[str, Any]]) -> None:
    browser, state = shown
    [flow] = state["dataflows"]
    fitted = browser.says(VIEW)
    for key in ("+", "-", "ArrowLeft", "ArrowDown"):
        before = browser.says(VIEW)
        browser.press(key)
        assert browser.says(VIEW) != before, key
    browser.press("0")
    assert browser.says(VIEW) == fitted

    assert browser.says(OPERATORS) == len(flow["operators"])
    browser.press("o")
    assert browser.says(SCOPES) == len(flow["scopes"]) - 1
    browser.press("o")
    assert browser.says(SCOPES) == 0

    theme = "document.documentElement.dataset.theme"
    browser.press("t")
    first = browser.says(theme)
    browser.press("t")
    assert {first, browser.says(theme)} == {"dark", "light"}

    browser.press("/")
    assert browser.says("document.activeElement.id") == "find"
    browser.press(*"step 2.7", "Enter")
    assert browser.says("document.querySelector('#title').textContent") == "step 2.7"
    assert browser.says("document.querySelector('#find').value") == "step 2.7", (
        "letters are no commands there"
    )
    faint = browser.says("document.querySelectorAll('.op.lost').length")
    assert faint == len(flow["operators"]) - 1
    browser.press("Escape", "Escape")
    assert browser.says("document.querySelector('#title').textContent") == "Busiest operators"


def test_tab_and_enter_pick_operators_and_open_and_close_scopes(
    shown: tuple[Browser, dict[str, Any]],
) -> None:
    browser, _ = shown
    focused = "document.activeElement.getAttribute('aria-label') ?? ''"

    def tab_to(what: str) -> None:
        for _ in range(200):
            browser.press("Tab")
            if what in browser.says(focused):
                return
        raise AssertionError(f"Tab does not come to {what}")

    tab_to("Close scope part 1")
    everything = browser.says(OPERATORS)
    browser.press("Enter")
    assert browser.says(SCOPES) == 1
    assert browser.says(OPERATORS) == everything - 9 + 1
    assert browser.says(focused) == "Scope part 1", "what is drawn again keeps the focus"
    browser.press("Enter")
    assert browser.says("document.querySelector('#title').textContent") == "part 1"
    detail = browser.says("document.querySelector('#detail').textContent")
    assert "holds9 operators" in detail
    assert f"records in{ROUNDS * RECORDS}" in detail
    browser.press("Enter")
    assert browser.says(SCOPES) == 0
    assert browser.says(focused) == "Close scope part 1"
    tab_to("Operator step 3.0")
    browser.press("Enter")
    assert browser.says("document.querySelector('#title').textContent") == "step 3.0"


def test_every_link_says_its_frontier_and_crosses_no_box(shown: tuple[Browser, dict[str, Any]]) -> None:
    browser, state = shown
    [flow] = state["dataflows"]
    links = 0
    for _ in range(2):  # open, and then folded
        links = browser.says("document.querySelectorAll('.link').length")
        labels = browser.says("[...document.querySelectorAll('text.frontier')].map(one => one.textContent)")
        assert links == len(labels) > 0
        assert set(labels) == {"done"}
        crossed = browser.says(CROSSED)
        assert crossed == []
        browser.press("o")
    assert links < len(flow["links"])
