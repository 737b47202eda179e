"use strict";
// --- where boxes stand ---------------------------------------------------------------------------
// The stages of gradcli/show/pictures/layout.py, for the modules that are open now: ranks by longest
// path, a lane in every rank that an arrow passes, sweeps of barycentres, places by least squares.
// Each open module is laid out by itself and then stands in its parent as one box.

const RANK_GAP = 15, BOX_GAP = 18, EMPTY_GAP = 8, LANE = 12, SWEEPS = 12, ALIGNMENTS = 8, STRAIGHT = 8;
const MARGIN = 14, TITLE = 22;

// The pairs "source,target" that close a cycle, met in depth-first order.
function closingPairs(count, pairs) {
  const outgoing = Array.from({ length: count }, () => []), state = new Array(count).fill(0), closing = new Set();
  for (const [source, target] of pairs) if (source !== target) outgoing[source].push(target);
  for (let root = 0; root < count; root++) {
    if (state[root]) continue;
    state[root] = 1;
    const stack = [[root, 0]];
    while (stack.length) {
      const top = stack.at(-1), next = outgoing[top[0]][top[1]++];
      if (next === undefined) { state[top[0]] = 2; stack.pop(); }
      else if (state[next] === 1) closing.add(`${top[0]},${next}`);
      else if (!state[next]) { state[next] = 1; stack.push([next, 0]); }
    }
  }
  return closing;
}

// The rank of each box, even numbers: labels stand in the odd ranks between.
function ranksOf(count, links, first, last) {
  const outgoing = Array.from({ length: count }, () => []), waiting = new Array(count).fill(0), ranks = new Array(count).fill(0);
  for (const { source, target } of links) {
    if (source !== target) { outgoing[source].push(target); waiting[target]++; }
  }
  const sources = [...waiting.keys()].filter((box) => !waiting[box]), ready = [...sources];
  while (ready.length) {
    const box = ready.pop();
    for (const target of outgoing[box]) {
      ranks[target] = Math.max(ranks[target], ranks[box] + 2);
      if (!--waiting[target]) ready.push(target);
    }
  }
  for (const box of sources) if (outgoing[box].length) ranks[box] = Math.min(...outgoing[box].map((each) => ranks[each])) - 2;
  const top = Math.min(0, ...ranks), bottom = Math.max(0, ...ranks);
  for (const box of first) ranks[box] = top - 2;
  for (const box of last) ranks[box] = bottom + 2;
  return ranks;
}

const vertex = (number, rank, width, height) => ({ number, rank, width, height, above: [], below: [], place: 0, x: 0, y: 0 });

function piece(upper, lower, leaves, enters) {
  const part = { upper, lower, leaves, enters };
  upper.below.push(part);
  lower.above.push(part);
  return part;
}

// The pieces of a link, through a lane in each rank between its boxes; none for one of a box to itself.
function piecesOf(boxes, link) {
  const source = boxes[link.source], target = boxes[link.target];
  if (source === target) return [];
  const chain = [source], labelled = link.upward ? source.rank + 1 : target.rank - 1;
  for (let rank = source.rank + 1; rank < target.rank; rank++) {
    const [width, height] = rank === labelled ? link.label : [0, 0];
    chain.push(vertex(null, rank, Math.max(width, LANE), height));
  }
  chain.push(target);
  return chain.slice(1).map((lower, at) => piece(chain[at], lower, at ? 0 : link.leaves, at === chain.length - 2 ? link.enters : 0));
}

const number = (layers) => layers.forEach((layer) => layer.forEach((each, place) => { each.place = place; }));

function barycentre(each, downwards) {
  const places = downwards ? each.above.map((part) => part.upper.place) : each.below.map((part) => part.lower.place);
  return places.length ? places.reduce((sum, place) => sum + place, 0) / places.length : each.place;
}

function crossings(layers) {
  let count = 0;
  for (const layer of layers) {
    const passed = [];
    for (const each of layer) {
      const ends = each.below.map((part) => part.lower.place);
      for (const end of ends) for (const before of passed) if (before > end) count++;
      passed.push(...ends);
    }
  }
  return count;
}

// The ranks from the top, each in the order with the fewest crossings that was met.
function ordered(boxes, edges) {
  const all = [...new Set([...boxes, ...edges.flat().map((part) => part.lower)])], seen = new Set();
  const stack = all.filter((each) => !each.below.length).sort((a, b) => a.rank - b.rank);
  while (stack.length) {
    const each = stack.pop();
    if (!seen.has(each)) { seen.add(each); stack.push(...each.above.map((part) => part.upper).reverse()); }
  }
  const byRank = new Map();
  for (const each of seen) byRank.set(each.rank, [...(byRank.get(each.rank) || []), each]);
  const layers = [...byRank.keys()].sort((a, b) => a - b).map((rank) => byRank.get(rank));
  number(layers);
  let best = layers.map((layer) => [...layer]), fewest = crossings(layers);
  for (let sweep = 0; sweep < SWEEPS && fewest; sweep++) {
    const downwards = sweep % 2 === 0;
    for (const layer of downwards ? layers : [...layers].reverse()) {
      const centres = new Map(layer.map((each) => [each, barycentre(each, downwards)]));
      layer.sort((a, b) => centres.get(a) - centres.get(b));
      number([layer]);
    }
    const count = crossings(layers);
    if (count < fewest) [best, fewest] = [layers.map((layer) => [...layer]), count];
  }
  number(best);
  return best;
}

// Each arrow that may meet a box anywhere gets a place of its own on the box's side.
function spreadEnds(layers) {
  for (const each of layers.flat()) {
    const entering = each.above.filter((part) => part.enters === null).sort((a, b) => a.upper.place - b.upper.place);
    entering.forEach((part, at) => { part.enters = each.width * ((at + 1) / (entering.length + 1) - 0.5); });
    const leaving = each.below.filter((part) => part.leaves === null).sort((a, b) => a.lower.place - b.lower.place);
    leaving.forEach((part, at) => { part.leaves = each.width * ((at + 1) / (leaving.length + 1) - 0.5); });
  }
}

const gapBehind = (each) => (each.number === null ? LANE / 2 : BOX_GAP);

// Where a vertex would stand straight with its neighbours, and how much that weighs.
function wanted(each, above) {
  const parts = above ? each.above : each.below;
  let total = 0, weights = 0;
  for (const part of parts) {
    const weight = part.upper.number === null && part.lower.number === null ? STRAIGHT : 1, shift = part.enters - part.leaves;
    total += weight * (above ? part.upper.x - shift : part.lower.x + shift);
    weights += weight;
  }
  return parts.length ? [total / weights, weights] : [each.x, 0.01];
}

// Move the vertices of a rank: least squares to where the neighbours are, in this order (isotonic
// regression, by pooling neighbours that would change places).
function placeRank(layer, above) {
  const pools = [], shifts = [];
  let shift = 0;
  layer.forEach((each, at) => {
    const before = layer[at - 1];
    if (before) shift += (before.width + each.width) / 2 + Math.max(gapBehind(before), gapBehind(each));
    shifts.push(shift);
    const [x, weight] = wanted(each, above);
    pools.push([(x - shift) * weight, weight, 1]);
    while (pools.length > 1 && pools.at(-2)[0] / pools.at(-2)[1] > pools.at(-1)[0] / pools.at(-1)[1]) {
      const last = pools.pop();
      last.forEach((value, part) => { pools.at(-1)[part] += value; });
    }
  });
  let at = 0;
  for (const [total, weight, count] of pools) {
    for (let each = 0; each < count; each++, at++) layer[at].x = total / weight + shifts[at];
  }
}

function align(layers) {
  for (const layer of layers) {
    let x = 0;
    for (const each of layer) { each.x = x + each.width / 2; x += each.width + gapBehind(each); }
  }
  for (let round = 0; round < ALIGNMENTS; round++) {
    for (const layer of layers.slice(1)) placeRank(layer, true);
    for (const layer of layers.slice(0, -1).reverse()) placeRank(layer, false);
  }
}

// The points of a link: straight down through each rank, so that it bends only between ranks.
function pathOf(parts, sides) {
  const points = [];
  parts.forEach((part, at) => {
    const x = part.upper.x + part.leaves, to = part.lower.x + part.enters;
    if (!at) points.push([x, part.upper.y + part.upper.height]);
    points.push([x, sides.get(part.upper.rank)[1]], [to, sides.get(part.lower.rank)[0]]);
  });
  points.push([points.at(-1)[0], parts.at(-1).lower.y]);
  return points.filter(([x, y], at) => !at || points[at - 1][0] !== x || points[at - 1][1] !== y);
}

// Lay out boxes of these sizes so that links run down; `first` and `last` stand in ranks of their own.
function layered(sizes, links, first, last) {
  const down = links.map((link) => (!link.upward ? link
    : { ...link, source: link.target, target: link.source, leaves: link.enters, enters: link.leaves }));
  const ranks = ranksOf(sizes.length, down, first, last);
  const boxes = sizes.map(([width, height], at) => vertex(at, ranks[at], width, height));
  const edges = down.map((link) => piecesOf(boxes, link)), layers = ordered(boxes, edges);
  spreadEnds(layers);
  align(layers);
  const sides = new Map();
  let y = 0, gap = 0;
  for (const layer of layers) {
    const height = Math.max(...layer.map((each) => each.height));
    sides.set(layer[0].rank, [y, y + height]);
    gap = height ? RANK_GAP : EMPTY_GAP;
    y += height + gap;
  }
  const all = layers.flat(), left = Math.min(...all.map((each) => each.x - each.width / 2));
  for (const each of all) {
    const [top, bottom] = sides.get(each.rank);
    each.x -= left;
    each.y = each.above.length && !each.below.length ? top : each.below.length && !each.above.length ? bottom - each.height : (top + bottom - each.height) / 2;
  }
  const paths = edges.map((parts, at) => {
    const box = boxes[down[at].source], x = box.x + box.width / 2, quarter = box.height / 4;
    if (!parts.length) return [[x, box.y + 3 * quarter], [x + BOX_GAP / 2, box.y + 2 * quarter], [x, box.y + quarter]];
    const points = pathOf(parts, sides);
    return down[at].upward ? points.reverse() : points;
  });
  const labels = edges.map((parts, at) => {
    if (!down[at].label[0] || parts.length < 2) return null;
    const lane = down[at].upward ? parts[0].lower : parts.at(-1).upper;
    return [lane.x, (sides.get(lane.rank)[0] + sides.get(lane.rank)[1]) / 2];
  });
  return {
    width: Math.max(...all.map((each) => each.x + each.width / 2)), height: y - gap,
    corners: boxes.map((box) => [box.x - box.width / 2, box.y]), paths, labels,
  };
}

// Lay out what stands in an open module, or with "" in the whole graph.
//   items: boxes with `frames`, the keys of the open modules that they stand in, and `size`
//   arrows: with `source` and `target`, the numbers of items, and `labelSize`
//   rising: the arrows to or from outside that run up
// Gives width, height, `corners` by item, `frames`, `paths` (pieces by arrow), `labels` and `ports`.
function laidOut(items, arrows, module = "", depth = 0, rising = new Set()) {
  const parts = new Map(), partOf = new Map();
  items.forEach((item, at) => {
    if (module && item.frames[depth - 1] !== module) return;
    const part = item.frames.length === depth ? at : item.frames[depth];
    if (!parts.has(part)) parts.set(part, parts.size);
    partOf.set(at, parts.get(part));
  });
  const keys = [...parts.keys()], ends = new Map();
  arrows.forEach(({ source, target }, at) => {
    const from = partOf.get(source) ?? -1, to = partOf.get(target) ?? -1;
    if (from !== to || (from >= 0 && typeof keys[from] === "number")) ends.set(at, [from, to]);
  });
  const closing = closingPairs(keys.length, [...ends.values()].filter((pair) => Math.min(...pair) >= 0));
  const isUp = (arrow) => rising.has(arrow) || closing.has(ends.get(arrow).join(","));
  const frames = keys.map((key, part) => (typeof key === "number" ? null
    : laidOut(items, arrows, key, depth + 1, new Set([...ends.keys()].filter((arrow) => ends.get(arrow).includes(part) && isUp(arrow))))));
  const sizes = keys.map((key, part) => (frames[part] ? [frames[part].width, frames[part].height] : items[key].size));
  const ports = new Map(), above = new Set(), below = new Set();
  const portOn = (part, arrow) => (part >= 0 && frames[part] ? frames[part].ports.get(arrow) - frames[part].width / 2 : null);
  const fromAbove = (arrow) => (ends.get(arrow)[0] < 0) !== rising.has(arrow);
  const links = [...ends].map(([arrow, [from, to]]) => {
    if (Math.min(from, to) < 0) {
      ports.set(arrow, sizes.length);
      (fromAbove(arrow) ? above : below).add(sizes.length);
      sizes.push([0, 0]);
    }
    return {
      source: from < 0 ? ports.get(arrow) : from, target: to < 0 ? ports.get(arrow) : to,
      label: to >= 0 && !frames[to] ? arrows[arrow].labelSize : [0, 0],
      leaves: portOn(from, arrow), enters: portOn(to, arrow), upward: isUp(arrow),
    };
  });
  const plan = layered(sizes, links, above, below), [left, top] = module ? [MARGIN, MARGIN + TITLE] : [0, 0];
  const whole = {
    width: plan.width + 2 * left, height: plan.height + top + left,
    corners: new Map(), frames: [], paths: new Map(), labels: new Map(), ports: new Map(),
  };
  keys.forEach((key, part) => {
    const [x, y] = [plan.corners[part][0] + left, plan.corners[part][1] + top], inner = frames[part];
    if (!inner) { whole.corners.set(key, [x, y]); return; }
    const move = ([across, along]) => [across + x, along + y];
    whole.frames.push({ key, x, y, width: inner.width, height: inner.height });
    for (const each of inner.frames) whole.frames.push({ ...each, x: each.x + x, y: each.y + y });
    for (const [at, corner] of inner.corners) whole.corners.set(at, move(corner));
    for (const [at, label] of inner.labels) whole.labels.set(at, move(label));
    for (const [at, path] of inner.paths) {
      const pieces = path.map((points) => points.map(move));
      if (ends.has(at)) inner.paths.set(at, pieces); else whole.paths.set(at, pieces);
    }
  });
  [...ends].forEach(([arrow, [from, to]], at) => {
    let points = plan.paths[at].map(([x, y]) => [x + left, y + top]);
    if (ports.has(arrow)) {
      const x = plan.corners[ports.get(arrow)][0] + left, border = [x, fromAbove(arrow) ? 0 : whole.height];
      whole.ports.set(arrow, x);
      points = from < 0 ? [border, ...points] : [...points, border];
    }
    const before = from >= 0 && frames[from] ? frames[from].paths.get(arrow) || [] : [];
    const after = to >= 0 && frames[to] ? frames[to].paths.get(arrow) || [] : [];
    whole.paths.set(arrow, [...before, points, ...after]);
    if (plan.labels[at]) whole.labels.set(arrow, [plan.labels[at][0] + left, plan.labels[at][1] + top]);
  });
  return whole;
}
