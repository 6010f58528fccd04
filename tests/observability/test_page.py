"""The live page, metrics and logs: they agree with the engine, and only permitted clients read them."""

import json
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import pointstamp as ps
from browser import needs_browser
from gathering import gathering
from harness import wait_until
from pointstamp.observability import dashboard
from pointstamp.observability.dashboard import Page, document
from pointstamp.observability.log import read_log, to_perfetto
from pointstamp.observability.log_replay import Replay
from pointstamp.runtime.bootstrap import gate

XSS = "<img src=x onerror=\"document.title='struck'\">"

RECORDS = 700


def fetch(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def shown(look: Callable[[str], Any], capfd: pytest.CaptureFixture[str], **options: Any) -> Any:
    """A run with a page that has done its work and waits, while `look` is called with the page's address."""
    done = threading.Event()
    seen: list[Any] = []
    workers = options.get("workers", 2)
    ready = threading.Barrier(workers)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("shown") as scope:
            numbers, stream = scope.new_input()
            with scope.region("part") as part:
                mapped = stream.exchange(lambda x: x).enter(part).map(lambda x: x + 1, name=XSS).leave()
            probe = mapped.value_counts().probe()
        if worker.index == 0:
            numbers.send_batch(range(RECORDS))
        numbers.advance_to(5)
        worker.step_while(lambda: probe.less_than(5))
        ready.wait()
        if worker.index == 0:

            def ask() -> None:
                try:
                    said = capfd.readouterr().err
                    found = re.search(r"http://\S+", said)
                    assert found is not None, said
                    seen.append(look(found.group()))
                except BaseException as error:
                    seen.append(error)
                finally:
                    done.set()

            threading.Thread(target=ask).start()
        while not done.is_set():
            worker.step_or_park(0.02)
        numbers.close()

    ps.execute(main, config=ps.Config(dashboard=0, **{"workers": workers, **options}))
    [result] = seen
    if isinstance(result, BaseException):
        raise result
    return result


def operators(state: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one for flow in state["dataflows"] for one in flow["operators"]}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="how descriptors are listed is Linux's")
def test_no_answer_waits_for_its_headers_to_be_acknowledged() -> None:
    def asked(query: dict[str, str]) -> tuple[str, str]:
        return "text/plain", " ".join(gathering())

    before = " ".join(gathering())
    with Page("127.0.0.1", 0, {"/ends": asked}) as page:
        assert fetch(page.address + "ends") == before


def test_the_state_is_what_the_engine_did(capfd: pytest.CaptureFixture[str]) -> None:
    state = shown(lambda url: json.loads(fetch(f"{url}state")), capfd)
    found = operators(state)
    assert found[XSS]["records_in"] == found[XSS]["records_out"] == RECORDS
    assert found["input"]["records_out"] == RECORDS
    assert found["value_counts"]["records_in"] == RECORDS
    assert found["probe"]["records_in"] == RECORDS
    assert found["input"]["held"] == 2
    assert found["input"]["frontiers"] == [[0, [[5]]]]
    assert all(one["queued"] == 0 for one in found.values())
    assert [one["silent"] for one in state["workers"]] == [False, False]
    assert state["workers"][0]["parked"] > 0
    assert {scope["name"] for flow in state["dataflows"] for scope in flow["scopes"]} == {"shown", "part"}


def test_metrics_are_in_the_form_of_prometheus(capfd: pytest.CaptureFixture[str]) -> None:
    text = shown(lambda url: fetch(f"{url}metrics"), capfd)
    samples = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) pointstamp_[a-z_]+ .+", line)
            continue
        match = re.fullmatch(r'(pointstamp_[a-z_]+)\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)*)\} ([0-9.e+-]+)', line)
        assert match is not None, line
        samples[match.group(1), match.group(2)] = float(match.group(3))
    escaped = XSS.replace('"', '\\"')
    taken = [
        v for (name, labels), v in samples.items() if name.endswith("records_in_total") and escaped in labels
    ]
    assert taken == [RECORDS]
    assert samples["pointstamp_worker_up", 'worker="1",process="0"'] == 1
    counters = re.findall(r"# TYPE (\S+) counter", text)
    assert counters
    assert all(name.endswith("_total") for name in counters)


def test_what_it_waits_for_is_on_the_page(capfd: pytest.CaptureFixture[str]) -> None:
    text = shown(lambda url: fetch(f"{url}explain"), capfd)
    assert "The input 'input'" in text
    assert "stands at time 5" in text


def test_other_sites_and_strangers_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    def look(url: str) -> list[int]:
        codes = []
        for path, headers in (("state", {"Host": "evil.example"}), ("nothing", {}), ("../config.py", {})):
            with pytest.raises(urllib.error.HTTPError) as caught:
                fetch(url + path, **headers)
            codes.append(caught.value.code)
            caught.value.close()
        return codes

    codes = shown(look, capfd, workers=1)
    assert codes == [403, 404, 404]


def test_connections_that_ask_nothing_do_not_outlive_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    idle: list[socket.socket] = []

    def look(url: str) -> str:
        host, port = urllib.parse.urlsplit(url).netloc.split(":")
        idle.extend(socket.create_connection((host, int(port))) for _ in range(3))
        return fetch(url)  # which is accepted after them

    try:
        assert "<html" in shown(look, capfd)
        left = [thread.name for thread in threading.enumerate() if "process_request" in thread.name]
        assert not left
    finally:
        for connection in idle:
            connection.close()


def answers(text: str) -> dict[str, Any]:
    return {"/state": lambda query: ("text/plain", text)}


def connected(page: Page, count: int) -> list[socket.socket]:
    """Opens `count` silent connections, more than the page has room for."""
    place = urllib.parse.urlsplit(page.address)
    assert place.port is not None
    return [socket.create_connection((place.hostname, place.port), timeout=60) for _ in range(count)]


def test_more_silent_connections_than_there_is_room_for_take_few_threads_and_let_others_in() -> None:
    with Page("127.0.0.1", 0, answers("seen")) as page:
        before = threading.active_count()
        silent = connected(page, gate.PENDING + 30)
        try:
            assert fetch(f"{page.address}state") == "seen"
            assert threading.active_count() < before + gate.PENDING + 20  # those that end are not joined
            wait_until(lambda: threading.active_count() <= before + gate.PENDING + 1)
        finally:
            for connection in silent:
                connection.close()


def test_a_request_that_comes_byte_by_byte_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a byte comes: the limit is that of the whole request."""
    monkeypatch.setattr(dashboard, "PATIENCE", 0.5)
    with Page("127.0.0.1", 0, answers("seen")) as page:
        (slow,) = connected(page, 1)
        with slow, pytest.raises(ConnectionError):
            slow.sendall(b"GET /state HTTP/1.1\r\nHost: ")
            for _ in range(3000):
                slow.sendall(b"x")
                sleep(0.02)


def test_a_request_has_so_many_bytes_and_no_more() -> None:
    with Page("127.0.0.1", 0, answers("seen")) as page:
        (long,) = connected(page, 1)
        with long:
            long.sendall(b"GET /state HTTP/1.1\r\nHost: localhost\r\n")
            with suppress(ConnectionError):
                for _ in range(90):
                    long.sendall(b"X-Long: " + b"x" * 1000 + b"\r\n")
                long.sendall(b"\r\n")
                assert long.recv(100) == b""
        assert fetch(f"{page.address}state", **{"X-Long": "x" * 60_000}) == "seen"


def test_more_requests_than_are_answered_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "ANSWERED", 1)
    begun, gone_on = threading.Event(), threading.Event()

    def slow(query: dict[str, str]) -> tuple[str, str]:
        begun.set()
        gone_on.wait(60)
        return "text/plain", "seen"

    with Page("127.0.0.1", 0, {"/slow": slow, **answers("seen")}) as page:
        found: list[str] = []
        first = threading.Thread(target=lambda: found.append(fetch(f"{page.address}slow")))
        first.start()
        try:
            assert begun.wait(60)
            with pytest.raises(urllib.error.HTTPError) as caught:
                fetch(f"{page.address}state")
            assert caught.value.code == 503
            caught.value.close()
        finally:
            gone_on.set()
            first.join()
        assert found == ["seen"]
        wait_until(lambda: fetch_or_none(f"{page.address}state") == "seen")


def fetch_or_none(url: str) -> str | None:
    try:
        return fetch(url)
    except urllib.error.HTTPError as error:
        error.close()
        return None


def test_an_address_that_is_none_is_refused_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    def look(url: str) -> bytes:
        host, port = urllib.parse.urlsplit(url).netloc.split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"GET http://[::1/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return connection.recv(100)

    assert b" 400 " in shown(look, capfd)
    assert "Traceback" not in capfd.readouterr().err


def test_elsewhere_than_on_loopback_it_asks_for_a_token() -> None:
    with Page("0.0.0.0", 0, {"/state": lambda query: ("text/plain", "seen")}) as page:
        at = page.address.replace("0.0.0.0", "127.0.0.1")
        assert page.token is not None
        assert page.token in page.url
        for path, headers in (
            ("state", {}),
            ("", {}),
            ("state?token=wrong", {}),
            ("state", {"Authorization": "Bearer no"}),
        ):
            with pytest.raises(urllib.error.HTTPError) as caught:
                fetch(at + path, **headers)
            assert caught.value.code == 403
            caught.value.close()
        assert fetch(f"{at}state?token={page.token}") == "seen"
        assert fetch(f"{at}state", Authorization=f"Bearer {page.token}") == "seen"
        assert fetch(f"{at}state", Cookie=f"a=b; pointstamp-token={page.token}") == "seen"


def test_the_page_fetches_nothing_from_elsewhere() -> None:
    text = document("a word")
    links = set(re.findall(r"https?://[^\"'\s)]+", text))
    assert links == {"http://www.w3.org/2000/svg"}, "the name of a language, which is never fetched"
    assert "innerHTML" not in text


@needs_browser
def test_in_a_browser_the_numbers_are_the_engines_and_a_name_stays_text(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def look(url: str) -> tuple[str, dict[str, Any]]:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        command += ["--virtual-time-budget=4000", "--dump-dom", url]
        page = subprocess.run(command, capture_output=True, text=True, timeout=380, check=True).stdout
        return page, json.loads(fetch(f"{url}state"))

    page, state = shown(look, capfd)
    assert 'data-ready="yes"' in page
    assert "<title>pointstamp</title>" in page, "the name has run"
    assert "<img" not in page
    assert "&lt;img src=x onerror" in page
    found = operators(state)
    for name, note in (("value_counts", "records_in"), ("exchange", "records_in")):
        assert re.search(
            rf'class="name"[^>]*>{name}</text><text class="note"[^>]*>{found[name][note]} in<', page
        )
    assert 'class="note" x="12"' not in page
    assert f">{RECORDS} out<" in page
    assert re.search(r'class="frontier"[^>]*>5<', page)
    assert "stands at time 5" in page


# ------------------------------------------------------------ logs


def logged(folder: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("logged") as scope:
            numbers, stream = scope.new_input()
            with scope.region("part") as part:
                inner = stream.exchange(lambda x: x).enter(part).map(lambda x: x, name="same").leave()
            probe = inner.probe()
        for time in range(3):
            numbers.send_batch(range(10))
            numbers.advance_to(time + 1)
            worker.step_while(lambda time=time: probe.less_than(time + 1))  # type: ignore[misc]

    ps.execute(main, config=ps.Config(workers=2, log=folder))


def test_a_log_holds_what_happened_in_order(tmp_path: Path) -> None:
    logged(tmp_path)
    table = read_log(tmp_path)
    rows = table.to_pylist()
    kinds = Counter(row["kind"] for row in rows)
    assert kinds["begin"] == kinds["end"] > 0
    assert kinds["scope"] == 2 * 2
    assert set(table["worker"].to_pylist()) == {0, 1}
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    names = {(r["dataflow"], r["operator"]): r["name"] for r in rows if r["kind"] == "operator"}
    received = Counter()  # type: Counter[str]
    for row in rows:
        if row["kind"] == "receive":
            received[names[row["dataflow"], row["operator"]]] += row["count"]
    assert received["exchange"] == received["same"] == received["probe"] == 60
    capabilities = sum(row["count"] for row in rows if row["kind"] == "capability")
    assert capabilities == 0


def test_a_log_is_replayed_to_the_same_numbers(tmp_path: Path) -> None:
    logged(tmp_path)
    replay = Replay(tmp_path, moments=10)
    assert len(replay.states) == 10
    counts = [operators(state).get("same", {}).get("records_in", 0) for state in replay.states]
    assert counts == sorted(counts)
    last = operators(replay.states[-1])
    assert last["same"]["records_in"] == 60
    assert last["same"]["frontiers"] == [[0, []]]
    assert all(one["queued"] == 0 for one in last.values())
    assert not any(worker["ended"] for worker in replay.states[0]["workers"])
    assert [worker["ended"] for worker in replay.states[-1]["workers"]] == [True, True]
    assert {scope["name"] for scope in replay.states[-1]["dataflows"][0]["scopes"]} == {"logged", "part"}
    assert replay.states[-1]["dataflows"][0]["links"]


def test_a_trace_for_perfetto_nests(tmp_path: Path) -> None:
    logged(tmp_path)
    target = tmp_path / "trace.json"
    command = [sys.executable, "-m", "pointstamp", "view", str(tmp_path), "--perfetto", str(target)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=380, check=True).stdout
    events = json.loads(target.read_text())["traceEvents"]
    assert said.startswith(f"{len(events)} events")
    stacks: dict[int, list[str]] = {0: [], 1: []}
    seen = set()
    for event in events:
        if event["ph"] == "B":
            stacks[event["tid"]].append(event["name"])
            seen.add(event["name"])
        elif event["ph"] == "E":
            assert stacks[event["tid"]].pop() == event["name"]
    assert {"same", "part", "exchange"} <= seen
    assert to_perfetto(tmp_path, target) == len(events)


def test_where_there_is_no_log_it_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pointstamp", "view", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert result.returncode == 1
    assert "holds no log" in result.stderr


def test_what_a_page_or_log_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ps.ConfigError, match="dashboard"):
        ps.Config(dashboard=70000)
    with pytest.raises(ps.ConfigError, match="not an address"):
        ps.Config(dashboard="somewhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(ps.ConfigError, match="log cannot be written"):
        ps.execute(lambda worker: None, config=ps.Config(log=tmp_path / "file"))


def test_a_port_that_cannot_be_had_is_named_with_what_to_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for given in (port, f"127.0.0.1:{port}"):
            with pytest.raises(
                ps.ConfigError, match=rf"^dashboard={port}: the port is in use.* 0 takes a free one"
            ):
                ps.execute(lambda worker: None, config=ps.Config(dashboard=given))
    with pytest.raises(
        ps.ConfigError, match=r"^dashboard='192\.0\.2\.1:0': 192\.0\.2\.1 is no address of this"
    ):
        Page("192.0.2.1", 0, {})


@needs_browser
def test_in_a_browser_a_log_shows_its_moments_and_rows_are_joined_by_lanes(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("long") as scope:
            numbers, stream = scope.new_input()
            with scope.iterative("Turns") as turns:
                handle, back = turns.loop_variable()
                again, out = stream.enter(turns).concat(back).branch_when(lambda time: time[-1] >= 2)  # type: ignore[index]
                again.connect_loop(handle)
                stream = out.leave()
            for step in range(12):
                stream = stream.exchange(lambda x: x, name=f"a name as long as it may be {step}")
            probe = stream.probe()
        for time in range(3):
            numbers.send_batch(range(10))
            numbers.advance_to(time + 1)
            worker.step_while(lambda time=time: probe.less_than(time + 1))  # type: ignore[misc]

    ps.execute(main, config=ps.Config(log=tmp_path / "log"))
    states = Replay(tmp_path / "log").states
    at = next(at for at, state in enumerate(states) if operators(state).get("input", {}).get("records_out"))
    assert at < len(states) - 1
    view = [sys.executable, "-u", "-m", "pointstamp", "view", str(tmp_path / "log")]
    with subprocess.Popen(view, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            [url] = re.findall(r"http://\S+", serving.stdout.readline())
            command = [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={tmp_path}",
            ]
            command += ["--virtual-time-budget=4000", "--dump-dom", f"{url}#at={at}"]
            page = subprocess.run(command, capture_output=True, text=True, timeout=380, check=True).stdout
        finally:
            serving.kill()
    assert 'data-ready="yes"' in page
    shown = re.findall(r'<span id="when">[0-9:]+([0-9]{2}\.[0-9]{3})</span>', page)
    assert shown == [f"{int(states[at]['now'] * 1000) % 60_000 / 1000:06.3f}"]
    rate = operators(states[at])["input"]["records_out"] / (states[at]["now"] - states[at - 1]["now"])
    rated = f"{rate / 1e6:.1f}M" if rate >= 1e6 else f"{rate / 1e3:.1f}k" if rate >= 1e4 else f"{rate:.0f}"
    assert f">{rated}/s<" in page, "the first records, in the time since the moment before"
    # A link that goes back is of straight lines with round corners; none crosses the rows as a curve.
    links = re.findall(r'<path class="link [^"]*" d="M([0-9.]+),[0-9.]+ (C?)[^"]*?([0-9.]+),[0-9.]+"', page)
    assert links
    back = [curve for start, curve, end in links if float(end) < float(start)]
    assert len(back) >= 2, "one of the loop, and one to the second row"
    assert set(back) == {""}
