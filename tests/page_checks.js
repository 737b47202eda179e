// What the browser tests measure in a page; each gives plain data.

function colour(text) {
  return (text.match(/[\d.]+/g) || []).map(Number);
}

function luminance(parts) {
  return parts.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
}

// The colour behind a text: of the box or label of the picture that it stands in, or of the nearest
// element that has an opaque one.
function behind(element) {
  const group = element.closest("svg g[id]"), rect = group && group.querySelector(".box, .paper");
  const papers = rect ? [getComputedStyle(rect).fill] : [];
  for (let at = element; at; at = at.parentElement) papers.push(getComputedStyle(at).backgroundColor);
  return papers.map(colour).find((c) => c.length === 3 || c[3] === 1) || [255, 255, 255];
}

// Each visible text with the contrast that it has, 1 to 21.
function contrasts() {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    const told = text && !element.closest("script, style, title");
    if (!told || !element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element), ink = element.closest("svg") ? style.fill : style.color;
    const [low, high] = [colour(ink), behind(element)].map(luminance).sort((a, b) => a - b);
    found.push([text, (high + 0.05) / (low + 0.05)]);
  }
  return found;
}

function place(element) {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  return [left, right, top, bottom];
}

function places(selector) {
  return [...document.querySelectorAll(selector)].map(place);
}

// The texts of the picture that leave their boxes.
function leaving() {
  return [...document.querySelectorAll(".canvas g[id^=box]")].flatMap((group) => {
    const [left, right, top, bottom] = place(group.querySelector(".box"));
    const out = ([l, r, t, b]) => l < left || r > right || t < top - 1 || b > bottom + 1;
    return [...group.querySelectorAll("text")].filter((text) => out(place(text)));
  }).map((text) => text.textContent);
}

// Whether a text that was found is wholly in the window, and what is marked.
function found(text) {
  const rows = [...document.querySelectorAll(".canvas .named:not(.reference) text, .canvas .named:not(.reference) tspan")];
  const row = rows.filter((each) => each.textContent.includes(text)).at(-1);
  const [left, right, top, bottom] = place(row), pane = place(document.querySelector(".canvas"));
  return left >= pane[0] && right <= pane[1] && top >= Math.max(pane[2], 0) && bottom <= Math.min(pane[3], innerHeight);
}

const texts = (selector) => [...document.querySelectorAll(selector)].map((each) => each.textContent);
const visible = (selector) => document.querySelector(selector).checkVisibility();
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// For each step back the lines of each row: the class of a line's last piece, and its text.
function backwardLines() {
  openAll();
  return steps.flatMap((step, number) => {
    if (step.pass === "forward") return [];
    show(number);
    return [...document.querySelectorAll("#rows li")].map((item) =>
      [...item.children].map((line) => [line.lastChild.className, line.textContent]));
  });
}

function move(value) {
  const range = document.querySelector("#inputs input");
  range.value = value;
  range.dispatchEvent(new Event("input"));
}

// Open the leaves that stand behind their names; gives the names of all, in order.
function openLeaves() {
  const groups = [...document.querySelectorAll("#inputs details")];
  for (const group of groups) { group.open = true; group.dispatchEvent(new Event("toggle")); }
  return groups.map((group) => group.querySelector("summary").textContent.split(" ")[0]);
}

// Type other values of the elements, in order, into the fields of the inputs.
function typeIn(values) {
  const fields = [...document.querySelectorAll("#inputs input[type=number]")];
  values.forEach((value, at) => { fields[at].value = value; fields[at].dispatchEvent(new Event("input")); });
  return fields.length;
}
