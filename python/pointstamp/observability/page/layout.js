// Where boxes stand, as in layout.py, and the ways of links between them.

function layout(flow) {
  const children = new Map(), all = new Map();
  for (const one of [...flow.scopes, ...flow.operators]) all.set(key(one.address), one);
  const scopes = new Set(flow.scopes.map(scope => key(scope.address)));
  for (const one of all.values()) {
    const outer = key(one.address.slice(0, -1));
    if (!children.has(outer)) children.set(outer, []);
    if (one.address.length > 1) children.get(outer).push(key(one.address));
  }
  const inside = (scope, id) => {
    const depth = scope.split(".").length + 1;
    const parts = id.split(".");
    return parts.length >= depth && id.startsWith(scope + ".") ? parts.slice(0, depth).join(".") : null;
  };
  const boxes = new Map(), within = new Map(); // the rows of columns in each scope, and in those inside it
  const place = scope => {
    if (closed.has(scope)) { boxes.set(scope, {x: 0, y: 0, edge: 0, w: Math.max(128, wide("▸ " + shown(all.get(scope).name)) + 24), h: HEIGHT}); return; }
    const mine = children.get(scope) || [], before = new Map(mine.map(child => [child, []]));
    for (const child of mine) {
      if (scopes.has(child)) place(child);
      else boxes.set(child, {x: 0, y: 0, edge: 0, w: Math.max(84, wide(shown(all.get(child).name)) + 24), h: HEIGHT});
    }
    for (const [source, target] of flow.links) {
      const a = inside(scope, key(source)), b = inside(scope, key(target));
      if (a && b && a !== b && before.has(b)) before.get(b).push(a);
    }
    const column = new Map(), open = new Set();
    for (const start of mine) {
      if (column.has(start)) continue;
      const stack = [[start, 0]]; open.add(start);
      while (stack.length) {
        const top = stack[stack.length - 1], list = before.get(top[0]);
        if (top[1] < list.length) {
          const next = list[top[1]++];
          if (!column.has(next) && !open.has(next)) { open.add(next); stack.push([next, 0]); }
        } else {
          stack.pop(); open.delete(top[0]);
          column.set(top[0], Math.max(0, ...list.filter(one => column.has(one)).map(one => column.get(one) + 1)));
        }
      }
    }
    const columns = [];
    for (const child of mine) (columns[column.get(child)] ||= []).push(child);
    // Long chains are wrapped into rows, so that a picture of hundreds of operators is as wide as it is high.
    const area = mine.reduce((sum, child) => sum + (boxes.get(child).w + BETWEEN) * (boxes.get(child).h + GAP), 0);
    const frame = $("picture").getBoundingClientRect(), shape = scope.includes(".") ? 1.8 : 1.25 * Math.max(.6, frame.width / Math.max(1, frame.height));
    const widest = Math.max(scope.includes(".") ? 760 : 900, Math.sqrt(area * shape));
    let x = PADDING, top = PADDING + TITLE, bottom = top, right = 0, row = null, rows = 0;
    const mineRows = [];
    const centre = new Map();
    for (const list of columns) {
      if (!list) continue;
      const mean = child => { const ys = before.get(child).map(one => centre.get(one)).filter(y => y !== undefined); return ys.length ? ys.reduce((a, b) => a + b) / ys.length : 0; };
      list.sort((a, b) => mean(a) - mean(b));
      const width = Math.max(...list.map(child => boxes.get(child).w));
      if (x + width > widest && x > PADDING) { x = PADDING; top = bottom + GAP * 2; }
      let y = top;
      if (!row || row.top !== top) { row = {top, bottom, number: rows++, last: -1}; }
      row.last++;
      for (const child of list) {
        const box = boxes.get(child), dx = x - box.x, dy = y - box.y;
        for (const [id, other] of boxes) if (id === child || id.startsWith(child + ".")) { other.x += dx; other.y += dy; if (id !== child) other.edge += dx; }
        for (const inner of within.get(child) || []) { inner.top += dy; inner.bottom += dy; }
        Object.assign(box, {row, column: row.last, edge: x + width}); centre.set(child, y + box.h / 2); y += box.h + GAP;
      }
      row.bottom = bottom = Math.max(bottom, y - GAP); x += width + BETWEEN; right = Math.max(right, x - BETWEEN);
      if (!mineRows.includes(row)) mineRows.push(row);
    }
    within.set(scope, [...mineRows, ...mine.flatMap(child => within.get(child) || [])]);
    boxes.set(scope, {x: 0, y: 0, edge: 0, w: Math.max(right + PADDING, wide("▾ " + shown(all.get(scope).name)) + 2 * PADDING), h: Math.max(bottom, TITLE + PADDING) + PADDING});
  };
  place(key(flow.scopes[0].address));
  return boxes;
}

function visible(id) { // the box that stands for an operator: its own, or the closed scope that it is in
  const parts = id.split(".");
  for (let depth = 1; depth < parts.length; depth++) { const outer = parts.slice(0, depth).join("."); if (closed.has(outer)) return outer; }
  return id;
}

// A link is a curve where no box is in its way. Else it takes lanes: the gaps between columns and between rows, of each scope that it
// leaves, of the one that both ends are in, and of each that it enters. `number` is the target's: links to one share a lane.
function route(a, b, number) {
  const p = placed.get(a), q = placed.get(b), x = p.x + p.w, y = p.y + p.h / 2, u = q.x, v = q.y + q.h / 2;
  if (u >= x) {
    const bend = Math.max(20, (u - x) / 2);
    if (isFree(a, b, at => { const s = 1 - at; return [s * s * s * x + 3 * s * s * at * (x + bend) + 3 * s * at * at * (u - bend) + at * at * at * u, (s * s * s + 3 * s * s * at) * y + (3 * s * at * at + at * at * at) * v]; }))
      return {path: `M${x},${y} C${x + bend},${y} ${u - bend},${v} ${u},${v}`, spots: [[(x + u) / 2, (y + v) / 2 - 5], [x + (u - x) * .3, y + (v - y) * .2 - 5], [x + (u - x) * .7, y + (v - y) * .8 - 5]]};
  }
  const left = a.split("."), right = b.split("."), off = number % 4 * 2, apart = 8 + off;
  let depth = 1; while (left[depth] === right[depth] && depth < Math.min(left.length, right.length) - 1) depth++;
  const upTo = (parts, length) => parts.slice(0, length).join(".");
  const ends = [[u, v]]; let entry = v; // from the target outwards, to be turned round
  for (let length = right.length; length > depth + 1; length--) {
    const box = placed.get(upTo(right, length)), scope = placed.get(upTo(right, length - 1));
    if (box.column > 0) { const lane = box.row.top - apart; ends.push([box.x - apart, entry], [box.x - apart, lane]); entry = lane; }
    ends.push([scope.x, entry]);
  }
  const points = [[x, y]]; let exit = y;
  for (let length = left.length; length > depth + 1; length--) {
    const box = placed.get(upTo(left, length)), scope = placed.get(upTo(left, length - 1));
    if (box.column < box.row.last) { const lane = box.row.bottom + apart; points.push([box.edge + apart, exit], [box.edge + apart, lane]); exit = lane; }
    points.push([scope.x + scope.w, exit]);
  }
  const one = placed.get(upTo(left, depth + 1)), other = placed.get(upTo(right, depth + 1)), outer = placed.get(upTo(left, depth));
  const from = one.edge + apart, to = other.x - apart;
  points.push([from, exit]);
  if (one.row === other.row) {
    if (other.column !== one.column + 1) {
      const above = other.column > one.column && Math.min(exit, entry) - one.row.top < one.row.bottom - Math.max(exit, entry);
      const lane = above ? one.row.top - apart : one.row.bottom + apart; points.push([from, lane], [to, lane]);
    }
  } else {
    const down = other.row.number > one.row.number, near = Math.abs(other.row.number - one.row.number) === 1;
    const lane = down ? one.row.bottom + apart : one.row.top - apart, last = down ? other.row.top - apart : other.row.bottom + apart;
    points.push([from, lane]);
    if (near) points.push([to, lane]); else points.push([outer.x + apart, lane], [outer.x + apart, last], [to, last]);
  }
  points.push([to, entry], ...ends.reverse());
  return rounded(points);
}

function isFree(a, b, curve) {
  for (let step = 1; step < 24; step++) {
    const [x, y] = curve(step / 24);
    for (const [id, box] of placed) {
      if (x < box.x - 3 || x > box.x + box.w + 3 || y < box.y - 3 || y > box.y + box.h + 3) continue;
      if (id === a || id === b || a.startsWith(id + ".") && b.startsWith(id + ".")) continue;
      if (visible(id) !== id) continue;
      if ((a.startsWith(id + ".") || b.startsWith(id + ".")) && y > box.y + TITLE) continue; // the scope of one end
      return false;
    }
  }
  return true;
}

function rounded(corners) { // straight lines with round corners, and places for a label along the longest level one
  const points = corners.filter((point, i) => i === 0 || Math.hypot(point[0] - corners[i - 1][0], point[1] - corners[i - 1][1]) > .5);
  let path = "M" + points[0], longest = -1, spots = [points[0]];
  for (let i = 1; i < points.length; i++) {
    const before = points[i - 1], corner = points[i], after = points[i + 1], length = Math.abs(corner[0] - before[0]);
    if (length > longest) { longest = length; spots = [.5, .3, .7, .15, .85, .05, .95].map(part => [before[0] + (corner[0] - before[0]) * part, (corner[1] + before[1]) / 2 + 3]); }
    if (!after) break;
    const toward = next => { const far = Math.hypot(next[0] - corner[0], next[1] - corner[1]), part = Math.min(7, far / 2) / far; return [corner[0] + (next[0] - corner[0]) * part, corner[1] + (next[1] - corner[1]) * part]; };
    path += " L" + toward(before) + " Q" + corner + " " + toward(after);
  }
  return {path: path + " L" + points[points.length - 1], spots};
}
