// --- tensors -------------------------------------------------------------------------------------
// A tensor is its shape and its elements in row order. A number stands for a tensor without
// dimensions.

const sizeOf = (shape) => shape.reduce((size, each) => size * each, 1);
const isTensor = (value) => Boolean(value?.data);

function shapeOf(value) {
  return Array.isArray(value) ? [value.length, ...(value.length ? shapeOf(value[0]) : [])] : [];
}

const tensor = (value, shape = shapeOf(value)) => ({ shape, data: [value].flat(Infinity) });
const filled = (shape, value) => ({ shape, data: new Array(sizeOf(shape)).fill(value) });
const lift = (value) => (isTensor(value) ? value : { shape: [], data: [value] });
const reshaped = (value, shape) => ({ shape, data: value.data });

// A tensor as nested lists, as the document has it.
function nested({ shape, data }) {
  if (!shape.length) return data[0];
  const size = sizeOf(shape.slice(1));
  return Array.from({ length: shape[0] }, (_, at) => nested({ shape: shape.slice(1), data: data.slice(at * size, (at + 1) * size) }));
}

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

// A function of numbers, for each element of tensors and numbers.
function mapped(compute, ...values) {
  if (!values.some(isTensor)) return compute(...values);
  const tensors = values.map(lift), shape = broadcastShape(tensors.map((each) => each.shape));
  const places = tensors.map((each) => (each.shape.join() === shape.join() ? null : indices(each.shape, shape)));
  const data = Array.from({ length: sizeOf(shape) }, (_, at) => compute(...tensors.map((each, number) => each.data[places[number] ? places[number][at] : at])));
  return { shape, data };
}

const plus = (x, y) => mapped((one, other) => one + other, x, y);
const minus = (x, y) => mapped((one, other) => one - other, x, y);
const times = (x, y) => mapped((one, other) => one * other, x, y);
const over = (x, y) => mapped((one, other) => one / other, x, y);

const expanded = (value, shape) => ({ shape, data: indices(lift(value).shape, shape).map((at) => lift(value).data[at]) });

// A gradient as its operand's shape asks: summed where that was broadcast.
function summedTo(value, shape) {
  const given = lift(value);
  if (given.shape.join() === shape.join()) return given;
  if (given.data.length < sizeOf(shape)) return expanded(given, shape);
  const sums = filled(shape, 0);
  indices(shape, given.shape).forEach((place, at) => { sums.data[place] += given.data[at]; });
  return sums;
}

function permuted({ shape, data }, order) {
  const strides = shape.map((_, at) => sizeOf(shape.slice(at + 1))), to = order.map((at) => shape[at]);
  const place = (rest, at) => (at < 0 ? 0 : (rest % to[at]) * strides[order[at]] + place(Math.floor(rest / to[at]), at - 1));
  return { shape: to, data: data.map((_, at) => data[place(at, to.length - 1)]) };
}

const from = (dim, rank) => (dim < 0 ? dim + rank : dim);

function swapped(value, one, other) {
  const order = value.shape.map((_, at) => at), [first, second] = [one, other].map((at) => from(at, order.length));
  [order[first], order[second]] = [order[second], order[first]];
  return permuted(value, order);
}

const turned = (value) => (value.shape.length < 2 ? value : swapped(value, -2, -1));

// The product of matrices, of batches of them too; a vector is a row at the left, a column at the
// right.
function product(left, right) {
  const one = left.shape.length === 1 ? reshaped(left, [1, ...left.shape]) : left;
  const other = right.shape.length === 1 ? reshaped(right, [...right.shape, 1]) : right;
  const [rows, inner] = one.shape.slice(-2), width = other.shape.at(-1);
  const batches = [one, other].map((each) => each.shape.slice(0, -2)), batch = broadcastShape(batches);
  const [lefts, rights] = batches.map((each) => indices(each, batch)), data = [];
  for (let number = 0; number < sizeOf(batch); number++) {
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < width; column++) {
        let sum = 0;
        for (let each = 0; each < inner; each++) sum += one.data[(lefts[number] * rows + row) * inner + each] * other.data[(rights[number] * inner + each) * width + column];
        data.push(sum);
      }
    }
  }
  return { shape: [...batch, ...(left.shape.length === 1 ? [] : [rows]), ...(right.shape.length === 1 ? [] : [width])], data };
}

const outer = (left, right) => times(reshaped(left, [left.data.length, 1]), right);

// The shape in which the dimensions that a reduction goes over have the size 1.
function keptShape({ shape }, dim) {
  const all = dim === undefined || (Array.isArray(dim) && !dim.length);
  const dims = (all ? shape.map((_, at) => at) : [dim].flat()).map((at) => from(at, shape.length));
  return shape.map((size, at) => (dims.includes(at) ? 1 : size));
}

// Reductions over dimensions that are kept with the size 1.
const summed = (value, dim) => summedTo(value, keptShape(value, dim));
const averaged = (value, dim) => { const sums = summed(value, dim); return times(sums, sums.data.length / value.data.length); };

function reduced(value, dim, first, compute) {
  const made = filled(keptShape(value, dim), first);
  indices(made.shape, value.shape).forEach((place, at) => { made.data[place] = compute(made.data[place], value.data[at]); });
  return made;
}

const largest = (value, dim) => reduced(value, dim, -Infinity, Math.max);
const multiplied = (value, dim) => reduced(value, dim, 1, (x, y) => x * y);

// The running sums along a dimension, or back from its end.
function cumulated(value, dim, backwards = false) {
  const made = { shape: value.shape, data: [...value.data] }, at = from(dim, value.shape.length);
  const size = value.shape[at] ?? 1, step = sizeOf(value.shape.slice(at + 1));
  const places = [...value.data.keys()];
  for (const place of backwards ? places.reverse() : places) {
    const along = Math.floor(place / step) % size, before = backwards ? place + step : place - step;
    if (backwards ? along < size - 1 : along > 0) made.data[place] += made.data[before];
  }
  return made;
}
