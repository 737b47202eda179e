// --- the picture of the graph --------------------------------------------------------------------
// Draws the boxes of the modules that are open, and a closed module as one box. An item is what is
// drawn as one box: a box of the document, or a closed module with the nodes of all its boxes.

const SVG = "http://www.w3.org/2000/svg", FONT = 12, ADVANCE = 0.62 * FONT, LINE = 15, PADDING = 8, BORDER = 16, APART = 3;
const MOST_PARAMETERS = 4;
const opened = new Set();
let items = [], links = [], boxOf = new Map(), extent = { width: 1, height: 1 };

// Ideographs and other wide characters take two columns of a monospaced font.
const columns = (text) => [...text].reduce((sum, each) => sum + (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/.test(each) ? 2 : 1), 0);

function svgElement(name, attributes, text) {
  const part = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  if (text !== undefined) part.textContent = text;
  return part;
}

const counted = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

// The norm of a value of the document.
function normOf(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === "object" && "norm" in value) return Number(value.norm);
  return Math.hypot(...[value].flat(Infinity).map(Number));
}

const brief = (number) => (number === null ? "none" : String(Number(number.toPrecision(4))));
const total = (norms) => (norms.some((each) => each !== null) ? Math.hypot(...norms) : null);

// What the rows of a closed module say: its title, its place, its parameters, its gradient.
function moduleRows(item) {
  const { title, path } = page.modules[item.key], facts = factsOf(item);
  const rows = [[["name", title]], [["node", `${path}, ${counted(item.nodes.length - facts.parameters.length, "node")}`]]];
  if (facts.parameters.length > MOST_PARAMETERS) {
    const elements = facts.parameters.reduce((sum, id) => sum + page.nodes[id].shape.reduce((size, each) => size * each, 1), 0);
    rows.push([["value", `${facts.parameters.length} parameters, ${elements.toLocaleString("en")} elements`]]);
  } else {
    for (const id of facts.parameters) rows.push([["value", `${called(id).slice(path.length + 1) || called(id)} (${page.nodes[id].shape.join(", ")})`]]);
  }
  rows.push([["gradient", `‖g‖ ${brief(facts.gradientIn)} → ${brief(facts.gradientOut)}`]]);
  return rows;
}

// What enters and leaves a closed module.
function factsOf(item) {
  const inside = new Set(item.nodes), inputs = new Map(), gradientOut = [];
  const parameters = item.nodes.filter((id) => page.nodes[id].leaf).sort((a, b) => called(a).localeCompare(called(b)));
  const outputs = new Set(item.nodes.includes(page.root) ? [page.root] : []);
  for (const arrow of page.arrows) {
    for (const [node, edge] of arrow.edges) {
      const row = edgeRows.get(`${node},${edge}`);
      if (!row) continue;
      if (inside.has(node) && !inside.has(row.to)) { inputs.set(row.to, row.operand); gradientOut.push(normOf(row.product)); }
      if (!inside.has(node) && inside.has(row.to)) outputs.add(row.to);
    }
  }
  const gradientIn = total([...outputs].map((id) => normOf(page.nodes[id].gradient)));
  return { parameters, inputs: [...inputs.keys()], outputs: [...outputs], gradientIn, gradientOut: total(gradientOut) };
}

// The items and the links between them as the modules are open now.
function arrange() {
  const places = new Map(), itemOf = [];
  items = [];
  page.boxes.forEach((box, at) => {
    const shut = box.within.findIndex((key) => !opened.has(key)), key = shut < 0 ? `${at}` : box.within[shut];
    if (!places.has(key)) {
      places.set(key, items.length);
      items.push(shut < 0 ? { ...box, key, frames: box.within, nodes: [...box.nodes] }
        : { kind: "module", key, frames: box.within.slice(0, shut), nodes: [] });
    }
    const item = items[places.get(key)];
    if (item.kind === "module" && shut >= 0) item.nodes.push(...box.nodes);
    itemOf.push(places.get(key));
  });
  for (const item of items) {
    if (!item.rows) item.rows = moduleRows(item);
    item.size = [Math.max(...item.rows.map((row) => columns(row.map(([, text]) => text).join("").trimEnd()))) * ADVANCE + 2 * PADDING, item.rows.length * LINE + PADDING];
  }
  boxOf = new Map(items.flatMap((item, at) => item.nodes.map((node) => [node, at])));
  const merged = new Map();
  for (const arrow of page.arrows) {
    const [source, target] = [itemOf[arrow.source], itemOf[arrow.target]];
    if (source === target && items[source].kind === "module") continue;
    const key = `${source},${target}`, known = merged.get(key), apart = items[source].kind !== "module" && items[target].kind !== "module";
    if (known && !apart) {
      known.edges.push(...arrow.edges);
      if (known.gradient && arrow.gradient) known.gradient = `× ${known.edges.length}`;
    } else merged.set(apart ? `${key},${merged.size}` : key, { ...arrow, source, target, edges: [...arrow.edges] });
  }
  links = [...merged.values()];
  for (const link of links) link.labelSize = link.gradient ? [columns(link.gradient) * ADVANCE + 4, FONT + 2] : [0, 0];
  return laidOut(items, links);
}

// A path that bends smoothly and meets each of its points vertically, `shift` beside the middle.
function lineOf(kind, pieces, shift) {
  const words = pieces.map((points) => points.map(([x, y], at) => {
    const [to, height] = [x + shift, y.toFixed(1)];
    if (!at) return `M${to.toFixed(1)} ${height}`;
    const from = points[at - 1][0] + shift, middle = ((points[at - 1][1] + y) / 2).toFixed(1);
    return from === to ? `L${to.toFixed(1)} ${height}` : `C${from.toFixed(1)} ${middle} ${to.toFixed(1)} ${middle} ${to.toFixed(1)} ${height}`;
  }).join(""));
  return svgElement("path", { class: kind, d: words.join("") });
}

function headOf(kind, points, shift) {
  const [[, before], [at, y]] = points.slice(-2), x = at + shift, back = y >= before ? y - 6 : y + 6;
  return svgElement("polygon", { class: kind, points: `${x},${y} ${x - 3},${back} ${x + 3},${back}` });
}

function drawLink(link, at, pieces) {
  const apart = link.kind === "constant" ? 0 : APART, group = svgElement("g", { id: `arrow${at}`, class: link.kind });
  group.append(lineOf("forward", pieces, -apart), headOf("point", pieces.at(-1), -apart));
  if (link.gradient) group.append(lineOf("backward", pieces, apart), headOf("back", [...pieces[0]].reverse(), apart));
  return group;
}

function drawItem(item, at, [x, y]) {
  const group = svgElement("g", { id: `box${at}`, class: item.kind, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
  const [width, height] = item.size, rx = item.kind === "leaf" || item.kind === "reference" ? 12 : 3;
  const several = item.kind === "repeated" || (item.kind === "module" && page.modules[item.key]?.title.includes(" × "));
  if (several) group.append(svgElement("rect", { class: "behind", x: 4, y: 4, width, height, rx }));
  group.append(svgElement("rect", { class: "box", width, height, rx }));
  item.rows.forEach((row, line) => {
    const text = svgElement("text", { x: PADDING, y: PADDING / 2 + line * LINE + FONT, class: row.length > 1 ? "" : row[0][0] });
    if (row.length > 1) text.append(...row.map(([role, words]) => svgElement("tspan", { class: role }, words.replaceAll("  ", "\u00a0\u00a0"))));
    else text.textContent = row[0][1].replaceAll("  ", "\u00a0\u00a0");
    group.append(text);
  });
  return group;
}

function drawFrame(frame) {
  const { title, path } = page.modules[frame.key], group = svgElement("g", { class: "module-frame", "data-key": frame.key });
  const room = Math.floor((frame.width - 16) / ADVANCE), words = [path === title ? `− ${title}` : `− ${path}  ${title}`, `− ${title}`, `− ${path.split(".").at(-1)}`];
  const text = words.find((each) => columns(each) <= room) || "−";
  group.append(svgElement("rect", { class: "frame", x: frame.x, y: frame.y, width: frame.width, height: frame.height, rx: 8 }),
    svgElement("rect", { class: "handle", x: frame.x, y: frame.y, width: frame.width, height: TITLE, rx: 8 }),
    svgElement("text", { class: "title", x: frame.x + 8, y: frame.y + 16 }, text));
  return group;
}

// Draw everything anew into the picture.
function draw(plan) {
  const root = svgElement("g", { transform: `translate(${BORDER} ${BORDER})` });
  extent = { width: plan.width + 2 * BORDER, height: plan.height + 2 * BORDER };
  // The titles of frames can be read where an arrow runs through them.
  root.append(...links.map((link, at) => drawLink(link, at, plan.paths.get(at))), ...plan.frames.map(drawFrame));
  for (const [at, [x, y]] of plan.labels) {
    const [width, height] = links[at].labelSize, group = svgElement("g", { id: `label${at}` });
    group.append(svgElement("rect", { class: "paper", x: x - width / 2, y: y - height / 2, width, height }),
      svgElement("text", { class: "gradient", "text-anchor": "middle", x, y: y + 4 }, links[at].gradient));
    root.append(group);
  }
  root.append(...items.map((item, at) => drawItem(item, at, plan.corners.get(at))));
  picture.setAttribute("viewBox", `0 0 ${extent.width} ${extent.height}`);
  picture.replaceChildren(root);
}
