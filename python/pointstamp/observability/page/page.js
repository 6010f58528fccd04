// What the page shows: the picture, the numbers on it, the details beside it; where they come from, and the hands that move it.

// ------------------------------------------------------------ the picture

function draw(flow) {
  const svg = $("picture"), focused = document.activeElement?.closest("#world [data-id]")?.dataset.id; svg.replaceChildren();
  const head = make("marker", {id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto"}, make("defs", {}, svg));
  make("path", {d: "M0,1 L7,4 L0,7 Z"}, head);
  const world = make("g", {id: "world"}, svg);
  placed = layout(flow);
  const names = new Map(), scopes = new Map(flow.scopes.map(scope => [key(scope.address), scope]));
  for (const one of [...flow.scopes, ...flow.operators]) names.set(key(one.address), one);
  const sorted = [...placed.entries()].sort((a, b) => a[0].split(".").length - b[0].split(".").length);
  for (const [id, box] of sorted) {
    const scope = scopes.get(id);
    if (!scope || closed.has(id) || visible(id) !== id) continue;
    const outer = scopes.get(id.slice(0, id.lastIndexOf(".")));
    const group = make("g", {class: "scope" + (id.split(".").length === 2 ? " top" : ""), "data-id": id}, world);
    make("rect", {class: "frame" + (outer && scope.dims > outer.dims ? " loop" : ""), x: box.x, y: box.y, width: box.w, height: box.h, rx: 12}, group);
    make("text", {x: box.x + 14, y: box.y + 20}, group, (id.includes(".") ? "▾ " : "") + shown(scope.name));
    if (id.includes(".")) {
      const bar = make("rect", {class: "bar", x: box.x, y: box.y, width: box.w, height: 28, tabindex: 0, role: "button", "aria-label": "Close scope " + scope.name}, group);
      bar.addEventListener("click", () => toggle(id)); bar.addEventListener("keydown", event => { if (event.key === "Enter") toggle(id); });
    }
  }
  const edges = new Map();
  for (const [source, target, pact] of flow.links) {
    const a = visible(key(source)), b = visible(key(target));
    if (a === b && key(source) !== key(target)) continue;
    const edge = a + " " + b + " " + pact; if (!edges.has(edge)) edges.set(edge, [a, b, pact, []]); edges.get(edge)[3].push(key(source));
  }
  const labels = [], targets = new Map();
  for (const [a, b, pact, from] of edges.values()) {
    if (!placed.has(a) || !placed.has(b)) continue;
    if (!targets.has(b)) targets.set(b, targets.size);
    const {path, spots} = route(a, b, targets.get(b));
    const link = make("path", {class: "link " + pact, d: path, "data-from": a, "data-to": b, "data-source": from.join(" "), "marker-end": "url(#head)"}, world);
    make("title", {}, link, ""); const at = spots.find(([x, y]) => !labels.some(other => Math.abs(other.x - x) < 30 && Math.abs(other.y - y) < 9)) || spots[0];
    labels.push({x: at[0], y: at[1], "data-of": from.join(" ")});
  }
  edgesShown = labels.length;
  for (const label of labels) make("text", {class: "frontier", ...label}, world);
  for (const [id, box] of sorted) {
    const one = names.get(id); if (!one || visible(id) !== id) continue;
    const folded = closed.has(id); if (scopes.has(id) && !folded) continue;
    const group = make("g", {class: "op" + (one.inputs === 0 ? " source" : ""), "data-id": id, tabindex: 0, role: "button", "aria-label": (folded ? "Scope " : "Operator ") + one.name}, world);
    make("title", {}, group, one.name + (one.made ? "\n" + one.made : ""));
    make("rect", {class: "body", x: box.x, y: box.y, width: box.w, height: box.h, rx: one.inputs === 0 ? 20 : 8}, group);
    make("rect", {class: "heat", x: box.x + 8, y: box.y + box.h - 4, width: 0, height: 3, rx: 1.5}, group);
    make("text", {class: "name", x: box.x + 12, y: box.y + 17}, group, (folded ? "▸ " : "") + shown(one.name));
    make("text", {class: "note", x: box.x + 12, y: box.y + 31}, group, "");
    const queue = make("g", {class: "waiting"}, group);
    make("circle", {cx: box.x, cy: box.y + 4, r: 9}, queue); make("text", {class: "queue", x: box.x, y: box.y + 7}, queue, "");
    group.addEventListener("click", () => { pick(id); }); group.addEventListener("dblclick", () => { if (folded) toggle(id); });
    group.addEventListener("keydown", event => { if (event.key === "Enter") { if (folded && picked === id) toggle(id); else pick(id); event.preventDefault(); } });
  }
  move();
  if (focused) for (const group of world.querySelectorAll("[data-id]")) if (group.dataset.id === focused) (group.querySelector(".bar") || group).focus();
}

function toggle(id) { if (closed.has(id)) closed.delete(id); else closed.add(id); drawnFor = ""; render(); }

function move() {
  const world = $("world"); if (!world) return;
  world.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.zoom})`);
  $("picture").classList.toggle("mid", view.zoom < .5); $("picture").classList.toggle("far", view.zoom < .4); $("picture").style.setProperty("--zoom", view.zoom);
}

function fit() {
  const root = current && placed.get(key(current.scopes[0].address)); if (!root) return;
  const {width, height} = $("picture").getBoundingClientRect();
  view.zoom = Math.max(.04, Math.min(1.35, (width - 40) / root.w, (height - 66) / root.h)); // below it is the hint
  view.x = (width - root.w * view.zoom) / 2; view.y = (height - 30 - root.h * view.zoom) / 2; move();
}

// ------------------------------------------------------------ numbers

function parts(flow) { // what each visible box stands for, with its numbers
  const found = new Map();
  for (const operator of flow.operators) {
    const id = visible(key(operator.address)), before = found.get(id);
    if (!before) found.set(id, {...operator, only: id === key(operator.address), count: 1});
    else {
      before.count++; before.paused ||= operator.paused;
      for (const name of ["runs", "nanoseconds", "records_in", "records_out", "queued", "held"]) before[name] += operator[name];
      if (operator.kept_rows != null) { before.kept_rows = (before.kept_rows || 0) + operator.kept_rows; before.kept_bytes = (before.kept_bytes || 0) + operator.kept_bytes; before.kept_on_disk = (before.kept_on_disk || 0) + operator.kept_on_disk; }
    }
  }
  for (const scope of flow.scopes) { const one = found.get(key(scope.address)); if (one && !one.only) one.name = scope.name; }
  return found;
}

// What comes into a folded scope from outside, or where nothing does, what its own sources send: records a second, and so far.
function entering(flow, id) {
  const byId = new Map(flow.operators.map(one => [key(one.address), one])), readers = new Map();
  for (const [source] of flow.links) readers.set(key(source), (readers.get(key(source)) || 0) + 1);
  let now = 0, all = 0, any = false;
  for (const [source, target] of flow.links) {
    const from = key(source); if (!key(target).startsWith(id + ".") || from.startsWith(id + ".")) continue;
    any = true; now += (rates.get(from)?.out || 0) / readers.get(from); all += byId.get(from).records_out / readers.get(from);
  }
  if (!any) for (const one of flow.operators) if (one.inputs === 0 && key(one.address).startsWith(id + ".")) { now += rates.get(key(one.address))?.out || 0; all += one.records_out; }
  return {now, all};
}

function measure() {
  rates = new Map(); if (!before) return;
  const seconds = state.now - before.now; if (!(seconds > 0)) return;
  const old = new Map(); for (const flow of before.dataflows) for (const one of flow.operators) old.set(key(one.address), one);
  for (const flow of state.dataflows) for (const one of flow.operators) {
    const id = key(one.address), last = old.get(id); if (!last) continue;
    const rate = {in: (one.records_in - last.records_in) / seconds, out: (one.records_out - last.records_out) / seconds, busy: (one.nanoseconds - last.nanoseconds) / 1e9 / seconds};
    rates.set(id, rate);
    const past = history.get(id) || []; past.push(rate.in + (one.inputs ? 0 : rate.out)); if (past.length > 90) past.shift(); history.set(id, past);
  }
}

// Records a second of late: what comes now and then has a figure that does not flicker.
const lately = ids => ids.reduce((sum, id) => { const past = (history.get(id) || []).slice(-3); return sum + past.reduce((a, b) => a + b, 0) / Math.max(1, past.length); }, 0);

function update(flow) {
  const found = parts(flow), svg = $("picture");
  const workers = Math.max(1, state.workers.length);
  for (const group of svg.querySelectorAll(".op")) {
    const id = group.dataset.id, one = found.get(id); if (!one) continue;
    let rate = rates.get(id);
    if (!one.only) { rate = {in: 0, out: 0, busy: 0}; for (const [other, more] of rates) if (visible(other) === id) rate.busy += more.busy; }
    const enters = one.only ? null : entering(flow, id), now = !one.only ? enters.now : !rate ? 0 : recorded ? (one.inputs === 0 ? rate.out : rate.in) : lately([id]);
    const busy = rate ? Math.min(1, rate.busy / workers) : 0, box = placed.get(id);
    const heat = group.querySelector(".heat"); heat.setAttribute("width", busy * (box.w - 16)); for (const one of [heat, group]) { one.classList.toggle("warm", busy > .35); one.classList.toggle("hot", busy > .75); }
    const speed = now ? many(now) + "/s" : !one.only ? many(enters.all) + " in" : many(one.inputs === 0 ? one.records_out : one.records_in) + (one.inputs === 0 ? " out" : " in");
    group.querySelector(".note").textContent = (one.paused ? "paused · " : "") + (one.only ? "" : one.count + " op" + (one.count === 1 ? "" : "s") + " · ") + speed;
    const waiting = group.querySelector(".waiting"); waiting.style.display = one.queued > 0 ? "" : "none"; waiting.querySelector("text").textContent = many(one.queued);
    group.classList.toggle("picked", id === picked); group.classList.toggle("lost", wanted !== "" && !one.name.toLowerCase().includes(wanted));
    group.classList.toggle("ends", one.only && one.frontiers.length > 0 && one.frontiers.every(([, times]) => times.length === 0));
  }
  const byId = new Map(flow.operators.map(one => [key(one.address), one]));
  const least = sources => { // of what a link carries for several operators, the one that is farthest behind
    const ones = sources.split(" ").map(id => byId.get(id)).filter(one => one && one.frontiers.length), open = ones.filter(one => one.frontiers[0][1].length);
    const first = one => Math.min(...one.frontiers[0][1].map(time => time[0] ?? 0));
    return open.length ? frontier(open.reduce((a, b) => first(b) < first(a) ? b : a)) : ones.length ? "done" : "";
  };
  for (const label of svg.querySelectorAll("text.frontier")) { const times = least(label.dataset.of); label.textContent = times.length > 12 ? times.replace(/^(\([^)]*\)|\S+) .*$/, "$1 …") : times; }
  for (const link of svg.querySelectorAll(".link")) {
    const sources = link.dataset.source.split(" ");
    link.querySelector("title").textContent = sources.map(id => byId.get(id)?.name).join(", ") + ": " + (least(link.dataset.source) || "no time yet");
    link.classList.toggle("flow", !recorded && edgesShown < 200 && sources.some(id => rates.get(id)?.out > 0));
    link.classList.toggle("near", picked !== null && (link.dataset.from === picked || link.dataset.to === picked));
  }
}

function figures(flow) {
  const list = $("figures"); list.replaceChildren();
  const add = (value, name) => { const one = tag("div", list, undefined, "figure"); tag("b", one, value); tag("span", one, name); };
  let total = 0; for (const one of flow.operators) { const rate = rates.get(key(one.address)); if (rate && one.inputs === 0) total += rate.out; }
  add(many(total) + "/s", "records in");
  add(many(flow.operators.length), flow.operators.length === 1 ? "operator" : "operators");
  add(many(flow.operators.reduce((sum, one) => sum + one.queued, 0)), "records waiting");
  const processes = new Map(state.workers.map(one => [one.process, one])), sum = name => [...processes.values()].reduce((sum, one) => sum + (one[name] || 0), 0);
  if (!recorded) add(bytes(sum("in_flight")), "on their way");
  if (sum("memory")) add(bytes(sum("memory")), "of memory");
  const kept = flow.operators.reduce((sum, one) => sum + (one.kept_bytes || 0), 0);
  if (kept) add(bytes(kept), "of state");
  const onDisk = flow.operators.reduce((sum, one) => sum + (one.kept_on_disk || 0), 0);
  if (onDisk) add(bytes(onDisk), "of state on disk");
  add(state.workers.filter(one => !one.silent).length + " of " + state.workers.length, "workers answer");
}

function pick(id) { picked = picked === id ? null : id; render(); }

function details(flow) {
  const detail = $("detail"); detail.replaceChildren();
  const folded = picked && closed.has(picked) && parts(flow).get(picked), one = folded || picked && flow.operators.find(one => key(one.address) === picked);
  if (!one) {
    $("title").textContent = "Busiest operators";
    const table = tag("table", detail), head = tag("tr", table);
    tag("th", head, "operator"); tag("th", head, "share", "n"); tag("th", head, "records/s", "n");
    const same = new Map(); for (const one of flow.operators) same.set(one.name, (same.get(one.name) || 0) + 1);
    const scopes = new Map(flow.scopes.map(scope => [key(scope.address), scope.name]));
    const within = one => { const names = []; for (let depth = 2; depth < one.address.length; depth++) names.push(scopes.get(key(one.address.slice(0, depth)))); return names.join(" / "); };
    const score = one => { const rate = rates.get(key(one.address)); return rate ? rate.busy : one.nanoseconds / 1e12; };
    for (const one of [...flow.operators].sort((a, b) => score(b) - score(a)).slice(0, 9)) {
      const rate = rates.get(key(one.address)), row = tag("tr", table, undefined, "pick");
      const cell = tag("td", row, shown(one.name)); if (same.get(one.name) > 1) { const inner = within(one); if (inner) tag("div", cell, "in " + shown(inner), "soft"); }
      tag("td", row, rate ? Math.round(100 * Math.min(1, rate.busy / Math.max(1, state.workers.length))) + " %" : "", "n"); tag("td", row, rate ? many(rate.in || rate.out) : "", "n");
      row.addEventListener("click", () => pick(key(one.address)));
    }
    return;
  }
  $("title").textContent = one.name;
  const list = tag("dl", detail), add = (name, value) => { tag("dt", list, name); tag("dd", list, value); };
  const rate = rates.get(picked);
  add("address", picked); if (folded) add("holds", one.count + " operators"); else if (one.made) add("made at", one.made);
  add("ran", many(one.runs) + " times"); add("for", (one.nanoseconds / 1e9).toFixed(3) + " s");
  if (folded) { const enters = entering(flow, picked); add("records in", many(enters.all)); add("now", many(enters.now) + " /s"); }
  else { add("records in", many(one.records_in)); add("records out", many(one.records_out)); if (rate) add("now", many(rate.in) + " in, " + many(rate.out) + " out /s"); }
  add("waiting", many(one.queued)); add("capabilities", many(one.held));
  if (one.rejected) add("left out", many(one.rejected) + " lines that cannot be read");
  if (one.kept_rows != null) add("keeps", many(one.kept_rows) + " rows, " + bytes(one.kept_bytes) + (one.kept_on_disk ? ", " + bytes(one.kept_on_disk) + " on disk" : ""));
  if (one.lag && !folded) add("behind by", many(one.lag));
  for (const [port, times] of folded ? [] : one.frontiers) add("output " + port, times.length ? times.map(time).join(" ") : "done");
  const past = history.get(picked);
  if (past && past.length > 1) {
    const spark = make("svg", {id: "spark", viewBox: "0 0 90 44", preserveAspectRatio: "none"}, detail), most = Math.max(1, ...past);
    make("polyline", {fill: "none", stroke: "var(--accent)", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke", points: past.map((value, i) => `${90 - past.length + i},${42 - 40 * value / most}`).join(" ")}, spark);
  }
}

function people() {
  const table = $("workers"); table.replaceChildren();
  for (const worker of state.workers) {
    const row = tag("tr", table), cell = tag("td", row);
    tag("span", cell, "", "dot " + (worker.ended ? "asleep" : worker.silent ? "silent" : worker.busy ? "busy" : "asleep"));
    cell.append((worker.worker === null ? "process " + worker.process : "worker " + worker.worker) + (worker.process ? " · process " + worker.process : ""));
    tag("td", row, worker.ended ? "has ended" : worker.silent ? "does not answer" : worker.busy ? "at work" : "sleeps", "n");
    if (worker.silent && worker.at) tag("td", tag("tr", table), worker.at).colSpan = 2;
  }
}

function render() {
  if (!state) return;
  const select = $("which"), before = select.value;
  const names = state.dataflows.map(flow => flow.number + " " + flow.name);
  if (select.dataset.names !== names.join("\n")) {
    select.dataset.names = names.join("\n"); select.replaceChildren();
    for (const flow of state.dataflows) { const option = tag("option", select, flow.name); option.value = flow.number; }
    if ([...select.options].some(option => option.value === before)) select.value = before;
  }
  people();
  current = state.dataflows.find(flow => String(flow.number) === select.value) || state.dataflows[0] || null;
  if (!current) { $("figures").replaceChildren(); return; }
  if (!decided) { decided = true; if (current.operators.length > 100) for (const scope of current.scopes.slice(1)) closed.add(key(scope.address)); }
  const shape = JSON.stringify([current.number, current.operators.map(one => one.address), [...closed]]);
  if (shape !== drawnFor) { drawnFor = shape; draw(current); if (!fitted) { fitted = true; fit(); } }
  update(current); figures(current); details(current); tables();
  document.body.dataset.ready = "yes";
}

function tables() { // the first rows of collections that the program shows
  const place = $("tables"); place.replaceChildren();
  for (const one of state.tables || []) {
    tag("h2", place, one.name);
    const table = tag("table", place, undefined, "rows"), head = tag("tr", table);
    for (const name of one.columns) tag("th", head, name);
    for (const row of one.rows) { const line = tag("tr", table); for (const value of row) tag("td", line, value); }
    tag("p", place, one.count + " rows" + (one.count > one.rows.length ? ", of which the first " + one.rows.length + " are shown" : ""), "note");
  }
}

// ------------------------------------------------------------ where it comes from

async function get(path) { const answer = await fetch(path); if (!answer.ok) throw new Error(await answer.text()); return answer; }
async function refresh() {
  try { const next = await (await get("state")).json(); before = state; state = next; measure(); render(); $("holds").classList.remove("stale"); }
  catch (error) { $("holds").classList.add("stale"); $("holds").textContent = "The program does not answer: it has ended, or is stopped."; }
  setTimeout(refresh, 1000);
}
async function explain() {
  try { $("holds").textContent = await (await get("explain")).text(); } catch (error) { /* said by refresh */ }
  setTimeout(explain, 2000);
}
async function moment(index) {
  state = await (await get("state?at=" + index)).json();
  before = index > 0 ? await (await get("state?at=" + (index - 1))).json() : null;
  measure(); $("when").textContent = new Date(state.now * 1000).toISOString().slice(11, 23); render();
}
async function begin() {
  const about = await (await get("about")).json();
  if (about.moments) {
    recorded = about; document.body.classList.add("recorded"); $("slider").max = about.moments - 1; $("slider").value = Math.min(about.moments - 1, Number((/^#at=(\d+)$/.exec(location.hash) || [0, about.moments - 1])[1]));
    $("slider").addEventListener("input", () => { window.history.replaceState(null, "", "#at=" + $("slider").value); moment(Number($("slider").value)); }); $("holds").textContent = "This is a record: move the slider to see what was when.";
    await moment(Number($("slider").value));
  } else { refresh(); explain(); }
}

// ------------------------------------------------------------ hands

const svg = $("picture");
let held = null;
const zoom = (factor, x, y) => { const next = Math.max(.03, Math.min(4, view.zoom * factor)); view.x = x - (x - view.x) * next / view.zoom; view.y = y - (y - view.y) * next / view.zoom; view.zoom = next; move(); };
svg.addEventListener("pointerdown", event => { held = {x: event.clientX - view.x, y: event.clientY - view.y, moved: false}; });
window.addEventListener("pointermove", event => { if (held) { view.x = event.clientX - held.x; view.y = event.clientY - held.y; svg.classList.add("moving"); move(); } });
window.addEventListener("pointerup", () => { held = null; svg.classList.remove("moving"); });
svg.addEventListener("wheel", event => { event.preventDefault(); const at = svg.getBoundingClientRect(); zoom(Math.exp(-event.deltaY / 500), event.clientX - at.x, event.clientY - at.y); }, {passive: false});
$("which").addEventListener("change", () => { fitted = false; picked = null; render(); });
$("find").addEventListener("input", () => { wanted = $("find").value.trim().toLowerCase(); if (current) update(current); });
$("find").addEventListener("keydown", event => { if (event.key === "Enter" && current) { const one = current.operators.find(one => one.name.toLowerCase().includes(wanted)); if (one) show(key(one.address)); } });
function show(id) {
  for (const outer of [...closed]) if (id.startsWith(outer + ".")) closed.delete(outer);
  picked = id; drawnFor = ""; render();
  const box = placed.get(id), at = svg.getBoundingClientRect(); view.zoom = Math.max(view.zoom, .9);
  view.x = at.width / 2 - (box.x + box.w / 2) * view.zoom; view.y = at.height / 2 - (box.y + box.h / 2) * view.zoom; move();
}
const theme = () => { const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; root.dataset.theme = dark ? "light" : "dark"; };
$("theme").addEventListener("click", theme);
window.addEventListener("keydown", event => {
  if (event.target.matches("input, select") ) { if (event.key === "Escape") event.target.blur(); return; }
  const at = svg.getBoundingClientRect(), step = 60;
  const act = {"0": fit, "+": () => zoom(1.25, at.width / 2, at.height / 2), "=": () => zoom(1.25, at.width / 2, at.height / 2), "-": () => zoom(.8, at.width / 2, at.height / 2), t: theme,
    "/": () => $("find").focus(), Escape: () => { picked = null; render(); }, ArrowLeft: () => { view.x += step; move(); }, ArrowRight: () => { view.x -= step; move(); }, ArrowUp: () => { view.y += step; move(); }, ArrowDown: () => { view.y -= step; move(); },
    o: () => { if (!current) return; if (closed.size) closed.clear(); else for (const scope of current.scopes.slice(1)) closed.add(key(scope.address)); drawnFor = ""; render(); fit(); }}[event.key];
  if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act(); }
});
window.addEventListener("resize", () => { if (current) fit(); });
begin().catch(error => { $("holds").textContent = String(error.message || error); });
