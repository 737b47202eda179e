// --- computing both passes ---------------------------------------------------------------------
// A tensor is its shape and its elements in row order; pointwise operations and rules are computed
// element by element.

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
// What rules call, by position.
const functions = {
  add: (x, y, alpha = 1) => x + alpha * y, sub: (x, y, alpha = 1) => x - alpha * y, mul: (x, y) => x * y, div: (x, y) => x / y,
  pow: (x, y) => x ** y, neg: (x) => -x, reciprocal: (x) => 1 / x, square: (x) => x * x,
  exp: Math.exp, exp2: (x) => 2 ** x, expm1: Math.expm1, log: Math.log, log1p: Math.log1p, log2: Math.log2, log10: Math.log10,
  sqrt: Math.sqrt, rsqrt: (x) => 1 / Math.sqrt(x), sin: Math.sin, cos: Math.cos, tan: Math.tan,
  asin: Math.asin, acos: Math.acos, atan: Math.atan, atan2: Math.atan2, sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh,
  asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh, sigmoid, relu: (x) => Math.max(x, 0), abs: Math.abs,
  sign: Math.sign, sgn: Math.sign, floor: Math.floor, ceil: Math.ceil, trunc: Math.trunc, frac: (x) => x - Math.trunc(x),
  hypot: Math.hypot, maximum: Math.max, minimum: Math.min, where: (c, x, y) => (c ? x : y), masked_fill: (x, c, y) => (c ? y : x),
  silu: (x) => x * sigmoid(x), log_sigmoid: (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))),
  logaddexp: (x, y) => Math.max(x, y) + Math.log1p(Math.exp(-Math.abs(x - y))),
  "math.log": Math.log, "math.sqrt": Math.sqrt,
};
// The operations that take more than their operands, by the names of all that they take.
const clamped = (x, low = -Infinity, high = Infinity) => Math.min(Math.max(x, low), high);
const forwards = {
  add: ({ self, other, alpha = 1 }) => self + alpha * other, sub: ({ self, other, alpha = 1 }) => self - alpha * other,
  rsub: ({ self, other, alpha = 1 }) => other - alpha * self,
  pow: ({ self, base = self, exponent }) => base ** exponent, remainder: ({ self, other }) => self - Math.floor(self / other) * other,
  clamp: ({ self, min, max }) => clamped(self, min, max), hardtanh: ({ self, min_val, max_val }) => clamped(self, min_val, max_val),
  lerp: ({ self, end, weight }) => self + weight * (end - self),
  addcmul: ({ self, tensor1, tensor2, value = 1 }) => self + value * tensor1 * tensor2,
  addcdiv: ({ self, tensor1, tensor2, value = 1 }) => self + (value * tensor1) / tensor2,
  leaky_relu: ({ self, negative_slope }) => (self > 0 ? self : self * negative_slope),
  elu: ({ self, alpha, scale, input_scale }) => scale * (self > 0 ? self : alpha * Math.expm1(self * input_scale)),
  softplus: ({ self, beta, threshold }) => (self * beta > threshold ? self : Math.log1p(Math.exp(self * beta)) / beta),
};
const operators = {
  "+": (x, y) => x + y, "-": (x, y) => (y === undefined ? -x : x - y), "*": (x, y) => x * y, "/": (x, y) => x / y, "**": (x, y) => x ** y,
  "<": (x, y) => x < y, ">": (x, y) => x > y, "<=": (x, y) => x <= y, ">=": (x, y) => x >= y, "==": (x, y) => x === y, "!=": (x, y) => x !== y,
  "&": (x, y) => x && y, "|": (x, y) => x || y, "~": (x) => !x, if: (c, x, y) => (c ? x : y),
};

function evaluated(rule, names) {
  if (typeof rule === "string") return names[rule];
  if (!Array.isArray(rule)) return Number(rule);
  const compute = Object.hasOwn(operators, rule[0]) ? operators[rule[0]] : functions[rule[0]];
  return compute(...rule.slice(1).map((part) => evaluated(part, names)));
}

const known = (rule) => rule !== null && rule !== undefined
  && (!Array.isArray(rule) || ((Object.hasOwn(operators, rule[0]) || Object.hasOwn(functions, rule[0])) && rule.slice(1).every(known)));

const sizeOf = (shape) => shape.reduce((size, each) => size * each, 1);
const scalar = (value) => ({ shape: [], data: [value] });

function shapeOf(value) {
  return Array.isArray(value) ? [value.length, ...(value.length ? shapeOf(value[0]) : [])] : [];
}

const tensor = (value) => ({ shape: shapeOf(value), data: [value].flat(Infinity) });

// A tensor as nested lists, as the document has it.
function nested({ shape, data }) {
  if (!shape.length) return data[0];
  const size = sizeOf(shape.slice(1));
  return Array.from({ length: shape[0] }, (_, at) => nested({ shape: shape.slice(1), data: data.slice(at * size, (at + 1) * size) }));
}

const LARGEST_SHOWN = 24;
const plain = (value) => (value.data.length <= LARGEST_SHOWN ? nested(value) : { shape: value.shape, norm: brief(Math.hypot(...value.data)) });

function broadcastShape(shapes) {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, at) => {
    const sizes = shapes.map((shape) => shape[at - rank + shape.length] ?? 1);
    return sizes.find((size) => size !== 1) ?? 1;
  });
}

// The index in a shape of each element of a larger one that it is broadcast to.
function indices(shape, larger) {
  const places = new Array(sizeOf(larger)).fill(0);
  let stride = 1, step = 1;
  for (let at = 1; at <= larger.length; at++) {
    const size = larger.at(-at), own = at <= shape.length ? shape.at(-at) : 1;
    if (own !== 1) for (let each = 0; each < places.length; each++) places[each] += (Math.floor(each / step) % size) * stride;
    stride *= own;
    step *= size;
  }
  return places;
}

// A function of named numbers, for each element of named tensors.
function elementwise(compute, names) {
  const entries = Object.entries(names), tensors = entries.filter(([, value]) => value?.data);
  const shape = broadcastShape(tensors.map(([, value]) => value.shape));
  const places = tensors.map(([name, value]) => [name, value.data, indices(value.shape, shape)]);
  const current = Object.fromEntries(entries);
  const data = Array.from({ length: sizeOf(shape) }, (_, at) => {
    for (const [name, values, index] of places) current[name] = values[index[at]];
    return compute(current);
  });
  return { shape, data };
}

// A gradient summed to the shape of what was broadcast.
function summedTo(value, shape) {
  if (value.shape.join() === shape.join()) return value;
  const data = new Array(sizeOf(shape)).fill(0);
  indices(shape, value.shape).forEach((place, at) => { data[place] += value.data[at]; });
  return { shape, data };
}

const expanded = (value, shape) => ({ shape, data: indices(value.shape, shape).map((at) => value.data[at]) });
const reshaped = (value, shape) => ({ shape, data: value.data });

function permuted({ shape, data }, order) {
  const strides = shape.map((_, at) => sizeOf(shape.slice(at + 1))), to = order.map((at) => shape[at]);
  const place = (rest, at) => (at < 0 ? 0 : (rest % to[at]) * strides[order[at]] + place(Math.floor(rest / to[at]), at - 1));
  return { shape: to, data: data.map((_, at) => data[place(at, to.length - 1)]) };
}

const turned = (value) => permuted(value, value.shape.length === 2 ? [1, 0] : value.shape.map((_, at) => at));

// The product of two matrices; a vector is a row at the left, a column at the right.
function product(left, right) {
  const [rows, inner] = left.shape.length === 1 ? [1, left.shape[0]] : left.shape, width = right.shape[1] ?? 1;
  const data = Array.from({ length: rows * width }, (_, at) => {
    let sum = 0;
    for (let each = 0; each < inner; each++) sum += left.data[Math.floor(at / width) * inner + each] * right.data[each * width + (at % width)];
    return sum;
  });
  return { shape: [...left.shape.slice(0, -1), ...right.shape.slice(1)], data };
}

const outer = (left, right) => product(reshaped(left, [left.data.length, 1]), reshaped(right, [1, right.data.length]));

// The shape in which the dimensions that a reduction goes over have the size 1.
function keptShape({ shape }, dim) {
  const dims = (dim === undefined || (Array.isArray(dim) && !dim.length) ? shape.map((_, at) => at) : [dim].flat()).map((at) => (at < 0 ? at + shape.length : at));
  return shape.map((size, at) => (dims.includes(at) ? 1 : size));
}

const times = (value, factor) => ({ shape: value.shape, data: value.data.map((each) => each * factor) });
const combined = (x, y, compute) => elementwise(({ x: one, y: other }) => compute(one, other), { x, y });
const share = ({ self, dims }) => sizeOf(keptShape(self, dims)) / self.data.length;

function shiftedExponents(self, dim) {
  const kept = keptShape(self, dim), largest = new Array(sizeOf(kept)).fill(-Infinity);
  indices(kept, self.shape).forEach((place, at) => { largest[place] = Math.max(largest[place], self.data[at]); });
  const shifted = combined(self, { shape: kept, data: largest }, (x, y) => x - y);
  const sums = summedTo({ ...shifted, data: shifted.data.map(Math.exp) }, kept);
  return [shifted, sums];
}

const swapped = ({ self, dim0, dim1 }) => {
  const order = self.shape.map((_, at) => at), [one, other] = [dim0, dim1].map((at) => (at < 0 ? at + order.length : at));
  [order[one], order[other]] = [order[other], order[one]];
  return order;
};

// Operations of whole tensors: the result from names and shape, and what each operand receives.
const reshape = { forward: ({ self }, shape) => reshaped(self, shape), backward: { self: (grad, { self }) => reshaped(grad, self.shape) } };
const wholes = {
  sum: { forward: ({ self, dims }, shape) => reshaped(summedTo(self, keptShape(self, dims)), shape),
    backward: { self: (grad, { self, dims }) => expanded(reshaped(grad, keptShape(self, dims)), self.shape) } },
  mean: { forward: (names, shape) => times(reshaped(summedTo(names.self, keptShape(names.self, names.dims)), shape), share(names)),
    backward: { self: (grad, names) => times(expanded(reshaped(grad, keptShape(names.self, names.dims)), names.self.shape), share(names)) } },
  t: { forward: ({ self }) => turned(self), backward: { self: (grad) => turned(grad) } },
  transpose: { forward: (names) => permuted(names.self, swapped(names)), backward: { self: (grad, names) => permuted(grad, swapped(names)) } },
  mm: { forward: ({ self, mat2 }) => product(self, mat2),
    backward: { self: (grad, { mat2 }) => product(grad, turned(mat2)), mat2: (grad, { self }) => product(turned(self), grad) } },
  mv: { forward: ({ self, vec }) => product(self, vec),
    backward: { self: (grad, { vec }) => outer(grad, vec), vec: (grad, { self }) => product(turned(self), grad) } },
  dot: { forward: ({ self, tensor: other }) => product(self, other),
    backward: { self: (grad, { tensor: other }) => times(other, grad.data[0]), tensor: (grad, { self }) => times(self, grad.data[0]) } },
  addmm: { forward: ({ self, mat1, mat2, beta = 1, alpha = 1 }) => combined(self, product(mat1, mat2), (x, y) => beta * x + alpha * y),
    backward: { self: (grad, { beta = 1 }) => times(grad, beta), mat1: (grad, { mat2, alpha = 1 }) => times(product(grad, turned(mat2)), alpha),
      mat2: (grad, { mat1, alpha = 1 }) => times(product(turned(mat1), grad), alpha) } },
  softmax: { forward: ({ self, dim }) => { const [shifted, sums] = shiftedExponents(self, dim); return combined(shifted, sums, (x, y) => Math.exp(x) / y); },
    backward: { self: (grad, { result, dim }) => {
      const weighted = combined(grad, result, (x, y) => x * y), sums = summedTo(weighted, keptShape(result, dim));
      return combined(weighted, combined(result, sums, (x, y) => x * y), (x, y) => x - y);
    } } },
  log_softmax: { forward: ({ self, dim }) => { const [shifted, sums] = shiftedExponents(self, dim); return combined(shifted, sums, (x, y) => x - Math.log(y)); },
    backward: { self: (grad, { result, dim }) => combined(grad, combined(result, summedTo(grad, keptShape(result, dim)), (x, y) => Math.exp(x) * y), (x, y) => x - y) } },
  view: reshape, reshape, unsqueeze: reshape, squeeze: reshape, flatten: reshape,
};
const whole = (node) => (Object.hasOwn(wholes, node.op || "") ? wholes[node.op] : null);

function forward(node) {
  if (Object.hasOwn(forwards, node.op || "")) return forwards[node.op];
  const direct = Object.hasOwn(functions, node.op || "") && !Object.keys(node.arguments).length;
  return direct ? (names) => functions[node.op](...node.inputs.map((name) => names[name])) : null;
}

const isWhole = (value) => [value].flat(Infinity).every((each) => typeof each === "number");

function computable(id) {
  const node = page.nodes[id];
  if (node.leaf) return isWhole(node.value);
  if (!node.op || !node.operands.every((operand) => "node" in operand || isWhole(operand.value))) return false;
  const rules = Object.entries(node.rules || {});
  if (whole(node)) return rules.every(([edge]) => node.inputs[edge] in whole(node).backward);
  return forward(node) && rules.every(([, rule]) => known(rule));
}

// What a node's rules call its operands, its result and its arguments.
function namesOf(id, values) {
  const node = page.nodes[id], names = { ...node.arguments, result: values[id] };
  node.inputs.forEach((name, place) => {
    const operand = node.operands[place];
    names[name] = "node" in operand ? values[operand.node] : tensor(operand.value);
  });
  return names;
}

// In the precision that the tensor has.
function rounded(value, dtype) {
  return dtype === "float32" ? { shape: value.shape, data: value.data.map(Math.fround) } : value;
}

function passedOn(node, edge, names, grad) {
  const entry = whole(node);
  if (entry) return entry.backward[node.inputs[edge]](grad, names);
  return elementwise((each) => evaluated(node.rules[edge], each), { ...names, grad });
}

// Both passes once more, for other values of the leaves: as the engine does it, row by row.
function recompute(leaves) {
  const values = {}, sums = { [page.rows[0].node]: tensor(page.seed ?? 1) }, waiting = {};
  for (const id of page.forward) {
    const node = page.nodes[id];
    if (node.leaf) values[id] = rounded(leaves[id], node.dtype);
    else {
      const names = namesOf(id, values), entry = whole(node);
      values[id] = rounded(entry ? entry.forward(names, node.shape) : elementwise(forward(node), names), node.dtype);
    }
    node.value = plain(values[id]);
  }
  for (const row of page.rows) {
    const node = page.nodes[row.node];
    if (row.kind === "node") row.gradients_in = [plain(sums[row.node])];
    if (row.kind === "edge") {
      const names = namesOf(row.node, values), target = page.nodes[row.to], grad = sums[row.node];
      const flowed = rounded(passedOn(node, row.edge, names, grad), node.dtype), fitted = rounded(summedTo(flowed, target.shape), target.dtype);
      row.product = plain(flowed);
      if (row.derivative && !whole(node)) row.local = plain(elementwise((each) => evaluated(node.rules[row.edge], each), { ...names, grad: scalar(1) }));
      if (row.to in sums) (waiting[row.to] ||= []).push(fitted);
      else sums[row.to] = fitted;
      row.fitted = plain(fitted);
    }
    if (row.kind === "sum_to") row.value = edgeRows.get(`${row.node},${row.edge}`).fitted;
    if (row.kind === "meet") {
      const [old, arriving] = [sums[row.node], waiting[row.node].shift()];
      sums[row.node] = rounded(combined(old, arriving, (x, y) => x + y), node.dtype);
      [row.old, row.incoming, row.new] = [old, arriving, sums[row.node]].map(plain);
    }
    if (row.kind === "leaf") row.new = row.incoming = plain(sums[row.node]);
  }
  for (const id of page.forward) page.nodes[id].gradient = id in sums ? plain(sums[id]) : null;
}
