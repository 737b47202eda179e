// --- computing both passes -----------------------------------------------------------------------
// The tables of what a browser computes: functions of numbers, which hold element by element, and
// operations of whole tensors. A gradient is the rule that the page was given, or stands here.

// The error function: its series, and far from 0 the continued fraction of what is left to 1.
function erf(x) {
  const size = Math.abs(x);
  if (size < 2.5) {
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-17; n++) { term *= (-x * x) / n; sum += term / (2 * n + 1); }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let rest = 0;
  for (let n = 60; n > 0; n--) rest = n / 2 / (size + rest);
  return Math.sign(x) * (1 - Math.exp(-x * x) / (Math.sqrt(Math.PI) * (size + rest)));
}

// In the precision of the node that is computed: a sigmoid of 20 is 1 in single precision.
let kept = (x) => x;
const sigmoid = (x) => kept(1 / kept(1 + kept(Math.exp(-x))));
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
  mish: (x) => x * Math.tanh(Math.log1p(Math.exp(x))), clamp_min: Math.max, clamp_max: Math.min, threshold: (x, at, value) => (x > at ? x : value),
  hardswish: (x) => (x * clamped(x + 3, 0, 6)) / 6, erf, max: Math.max, min: Math.min, bool: Boolean, "math.log": Math.log, "math.sqrt": Math.sqrt,
};
// The operations that take more than their operands, by the names of all that they take.
const bend = (x) => Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3);
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
  gelu: ({ self, approximate }) => (approximate === "tanh" ? 0.5 * self * (1 + Math.tanh(bend(self))) : 0.5 * self * (1 + erf(self / Math.SQRT2))),
  softplus: ({ self, beta, threshold }) => (self * beta > threshold ? self : Math.log1p(Math.exp(self * beta)) / beta),
};
const operators = {
  "+": (x, y) => x + y, "-": (x, y) => (y === undefined ? -x : x - y), "*": (x, y) => x * y, "/": (x, y) => x / y, "**": (x, y) => x ** y,
  "<": (x, y) => x < y, ">": (x, y) => x > y, "<=": (x, y) => x <= y, ">=": (x, y) => x >= y, "==": (x, y) => x === y, "!=": (x, y) => x !== y,
  "&": (x, y) => x && y, "|": (x, y) => x || y, "~": (x) => !x, if: (c, x, y) => (c ? x : y),
};

// What rules do with whole tensors.
const ofTensors = {
  "@": product, mm: product, mv: product, bmm: product, dot: product, matmul: product, outer,
  t: turned, transpose: swapped, numel: (x) => lift(x).data.length,
  sum: (x, dim, keepdim) => (dim === undefined || keepdim ? summed(lift(x), dim) : null),
  unsqueeze: (x, dim) => { const shape = [...x.shape]; shape.splice(from(dim, shape.length + 1), 0, 1); return reshaped(x, shape); },
  squeeze: (x, dim) => reshaped(x, x.shape.filter((_, at) => at !== from(dim, x.shape.length))),
};

const computes = (table, name) => (Object.hasOwn(table, name) ? table[name] : null);

// A rule for named tensors and numbers.
function evaluated(rule, names) {
  if (typeof rule === "string") return names[rule];
  if (!Array.isArray(rule)) return Number(rule);
  const parts = rule.slice(1).map((part) => evaluated(part, names)), whole = computes(ofTensors, rule[0]);
  if (whole) return whole(...parts);
  const compute = computes(operators, rule[0]) || functions[rule[0]];
  return mapped((...numbers) => kept(compute(...numbers)), ...parts);
}

const known = (rule) => rule !== null && rule !== undefined && (!Array.isArray(rule)
  || ([operators, functions, ofTensors].some((table) => Object.hasOwn(table, rule[0])) && rule.slice(1).every(known)));

// --- operations of whole tensors -----------------------------------------------------------------
// Each gives its result, from what it was called with and the shape, and what operands receive
// where no rule says it.

function shiftedExponents(self, dim) {
  const shifted = minus(self, largest(self, dim));
  return [shifted, summed(mapped(Math.exp, shifted), dim)];
}

// A loss of each element as its reduction asks: none, the mean, or the sum.
const reductions = [(x) => x, (x) => averaged(x), (x) => summed(x)];
const loss = (compute) => ({ forward: (names, shape) => reshaped(reductions[names.reduction](compute(names)), shape) });
const weighed = (grad, { self, reduction }) => (reduction === 1 ? times(grad, 1 / self.data.length) : grad);

// The same for classes: of each sample the element of its class, with the weight of that.
function classes({ self, target, weight, ignore_index: ignored }) {
  const count = self.shape[self.shape.length > 1 ? 1 : 0], inner = sizeOf(self.shape.slice(2));
  return target.data.map((label, at) => ({
    place: (Math.floor(at / inner) * count + label) * inner + (at % inner), weight: label === ignored ? 0 : weight ? weight.data[label] : 1,
  }));
}

const variance = ({ self, dims, correction = 1 }) => {
  const centred = minus(self, averaged(self, dims)), sums = summed(times(centred, centred), dims);
  const count = self.data.length / sums.data.length;
  return { centred, count: count - correction, value: times(sums, 1 / (count - correction)) };
};
const alongside = (value, { self, dims }) => reshaped(value, keptShape(self, dims));

// The elements that are an extreme, each with its share of one.
const shared = ({ self, result, dims }) => {
  const hit = mapped((x, y) => Number(x === y), self, alongside(result, { self, dims }));
  return over(hit, summed(hit, dims));
};

// Normalising: the elements in another shape, without their mean and over their deviation.
function normal({ input, statistics: { shape, dims, eps, fixed } }) {
  const values = reshaped(input, shape), mean = fixed ? fixed[0] : averaged(values, dims), centred = minus(values, mean);
  const rstd = mapped((x) => 1 / Math.sqrt(x + eps), fixed ? fixed[1] : averaged(times(centred, centred), dims));
  return { rstd, values: times(centred, rstd) };
}
const scaling = ({ weight, statistics }) => (weight ? reshaped(weight, statistics.weight_shape) : 1);
const affine = {
  forward: (names, shape) => {
    const made = times(normal(names).values, scaling(names)), { bias, statistics } = names;
    return reshaped(bias ? plus(made, reshaped(bias, statistics.weight_shape)) : made, shape);
  },
  backward: {
    input: (grad, names) => {
      const { shape, dims, fixed } = names.statistics, { rstd, values } = normal(names), flowing = times(reshaped(grad, shape), scaling(names));
      const left = fixed ? flowing : minus(minus(flowing, averaged(flowing, dims)), times(values, averaged(times(flowing, values), dims)));
      return reshaped(times(left, rstd), names.input.shape);
    },
    weight: (grad, names) => {
      const { shape, weight_shape: kept } = names.statistics;
      return reshaped(summedTo(times(reshaped(grad, shape), normal(names).values), kept), names.weight.shape);
    },
    bias: (grad, { bias, statistics }) => reshaped(summedTo(reshaped(grad, statistics.shape), statistics.weight_shape), bias.shape),
  },
};

// Visit the places of each window: its number, a place of the input, and that in the kernel.
function tapped(windows, sizes, counts, visit) {
  for (let out = 0; out < sizeOf(counts); out++) {
    for (let tap = 0; tap < sizeOf(windows.kernel); tap++) {
      let place = 0, inside = true, restOut = out, restTap = tap, stride = 1;
      for (let at = sizes.length - 1; at >= 0; at--) {
        const along = (restOut % counts[at]) * windows.stride[at] - windows.padding[at] + (restTap % windows.kernel[at]) * windows.dilation[at];
        inside &&= along >= 0 && along < sizes[at];
        place += along * stride;
        stride *= sizes[at];
        restOut = Math.floor(restOut / counts[at]);
        restTap = Math.floor(restTap / windows.kernel[at]);
      }
      if (inside) visit(out, place, tap);
    }
  }
}

// A convolution adds up products: `visit` gets the places of output, input and weight of each.
function convolving({ input, weight, geometry: { windows, groups } }, shape, visit) {
  const rank = windows.kernel.length, sizes = input.shape.slice(-rank), counts = shape.slice(-rank), outputs = weight.shape[0];
  const own = weight.shape[1], each = outputs / groups, kernel = sizeOf(windows.kernel), space = sizeOf(sizes), across = sizeOf(counts);
  const samples = input.data.length / (own * groups * space);
  tapped(windows, sizes, counts, (out, place, tap) => {
    for (let sample = 0; sample < samples; sample++) {
      for (let channel = 0; channel < outputs; channel++) {
        for (let inner = 0; inner < own; inner++) {
          const read = (sample * groups + Math.floor(channel / each)) * own + inner;
          visit((sample * outputs + channel) * across + out, read * space + place, (channel * own + inner) * kernel + tap);
        }
      }
    }
  });
}
const overWindows = (grad, names, name, other) => {
  const made = filled(names[name].shape, 0);
  convolving(names, grad.shape, (out, place, tap) => {
    made.data[name === "input" ? place : tap] += grad.data[out] * names[other].data[name === "input" ? tap : place];
  });
  return made;
};
const channels = (bias, shape) => reshaped(bias, shape.map((_, at) => (at === 1 ? bias.data.length : 1)));

const reducing = (forward, backward) => ({ forward: (names, shape) => reshaped(forward(names.self, names.dims), shape), backward: { self: backward } });
const spread = (grad, names) => expanded(alongside(grad, names), names.self.shape);
const extreme = (compute) => reducing(compute, (grad, names) => times(alongside(grad, names), shared(names)));
const smallest = (value, dim) => reduced(value, dim, Infinity, Math.min);


// Of a group of elements the first that is its extreme, to which the gradient goes: `group` has for
// each element of the result the places that are compared.
function picked(self, groups, compare) {
  return groups.map((places) => places.reduce((best, place) => (best === undefined || compare(self.data[place], self.data[best]) ? place : best), undefined));
}
const picking = (placesOf) => ({
  forward: (names, shape) => ({ shape, data: placesOf(names, shape).map((place) => names.self.data[place]) }),
  backward: { self: (grad, names) => {
    const made = filled(names.self.shape, 0);
    placesOf(names, grad.shape).forEach((place, at) => { made.data[place] += grad.data[at]; });
    return made;
  } },
});
function along(extremeOf) {
  const single = { forward: ({ self }) => reshaped(extremeOf(self), []) };
  const compare = extremeOf === largest ? (x, y) => x > y : (x, y) => x < y;
  const several = picking(({ self, dim }) => {
    const kept = keptShape(self, dim), groups = Array.from({ length: sizeOf(kept) }, () => []);
    indices(kept, self.shape).forEach((place, at) => groups[place].push(at));
    return picked(self, groups, compare);
  });
  return { choose: (names) => (names.dim === undefined ? single : several) };
}
const pooling = picking(({ self, windows }, shape) => {
  const groups = Array.from({ length: sizeOf(shape) }, () => []), planes = sizeOf(shape.slice(0, -2));
  const counts = shape.slice(-2), sizes = self.shape.slice(-2), own = sizeOf(counts);
  tapped(windows, sizes, counts, (out, place) => {
    for (let plane = 0; plane < planes; plane++) groups[plane * own + out].push(plane * sizeOf(sizes) + place);
  });
  return picked(self, groups, (x, y) => x > y);
});

// The places of the elements along a dimension, those of equal ones in their order.
function sortedGroups(self, dim, descending = false) {
  const kept = keptShape(self, dim), groups = Array.from({ length: sizeOf(kept) }, () => []);
  indices(kept, self.shape).forEach((place, at) => groups[place].push(at));
  const order = (one, other) => (descending ? -1 : 1) * (self.data[one] - self.data[other]);
  return groups.map((places) => [places, [...places].sort(order)]);
}
const sorting = picking(({ self, dim, descending }) => {
  const made = new Array(self.data.length);
  for (const [places, order] of sortedGroups(self, dim, descending)) places.forEach((place, at) => { made[place] = order[at]; });
  return made;
});
// Along a dimension, of each group the first elements in an order, or the one of a number.
const topmost = picking(({ self, dim, largest: descending }, shape) => {
  const groups = sortedGroups(self, dim, descending), taken = groups.map(() => 0);
  return indices(keptShape(self, dim), shape).map((group) => groups[group][1][taken[group]++]);
});
const kth = picking(({ self, k, dim }) => sortedGroups(self, dim).map(([, order]) => order[k - 1]));
const middle = picking(({ self, dim }) => sortedGroups(self, dim).map(([, order]) => order[(order.length - 1) >> 1]));

const wholes = {
  ...linear, sort: sorting, topk: topmost, kthvalue: kth, median: { choose: ({ dim }) => (dim === undefined ? { forward: middle.forward } : middle) },
  sum: reducing(summed, spread),
  mean: reducing(averaged, (grad, names) => times(spread(grad, names), grad.data.length / names.self.data.length)),
  amax: extreme(largest), amin: extreme(smallest),
  max: along(largest), min: along(smallest), max_pool2d_with_indices: pooling,
  prod: { forward: ({ self, dim }, shape) => reshaped(multiplied(self, dim), shape),
    backward: { self: (grad, { self, dim }) => {
      const kept = keptShape(self, dim), group = indices(kept, self.shape);
      const others = self.data.map((_, at) => self.data.reduce((all, each, other) => (other !== at && group[other] === group[at] ? all * each : all), 1));
      return times(reshaped(grad, kept), { shape: self.shape, data: others });
    } } },
  cumsum: { forward: ({ self, dim }) => cumulated(self, dim), backward: { self: (grad, { dim }) => cumulated(grad, dim, true) } },
  var: { forward: (names, shape) => reshaped(variance(names).value, shape), backward: { self: (grad, names) => {
    const { centred, count } = variance(names);
    return times(times(alongside(grad, names), centred), 2 / count);
  } } },
  std: { forward: (names, shape) => reshaped(mapped(Math.sqrt, variance(names).value), shape), backward: { self: (grad, names) => {
    const { centred, count } = variance(names), [own, slope] = [names.result, grad].map((each) => alongside(each, names));
    return times(over(times(slope, centred), own), 1 / count);
  } } },
  linalg_vector_norm: { forward: ({ self, ord, dims }, shape) => {
    const powers = summed(mapped((x) => Math.abs(x) ** ord, self), dims);
    return reshaped(mapped((x) => x ** (1 / ord), powers), shape);
  } },
  logsumexp: { forward: ({ self, dims }, shape) => {
    const [, sums] = shiftedExponents(self, dims);
    return reshaped(plus(mapped(Math.log, sums), largest(self, dims)), shape);
  } },
  mm: { forward: ({ self, mat2 }) => product(self, mat2) }, bmm: { forward: ({ self, mat2 }) => product(self, mat2) },
  mv: { forward: ({ self, vec }) => product(self, vec), backward: { self: (grad, { vec }) => outer(grad, vec) } },
  dot: { forward: ({ self, tensor: other }) => product(self, other) },
  addmm: { forward: ({ self, mat1, mat2, beta = 1, alpha = 1 }) => plus(times(self, beta), times(product(mat1, mat2), alpha)) },
  addmv: { forward: ({ self, mat, vec, beta = 1, alpha = 1 }) => plus(times(self, beta), times(product(mat, vec), alpha)),
    backward: { mat: (grad, { vec, alpha = 1 }) => times(outer(grad, vec), alpha) } },
  baddbmm: { forward: ({ self, batch1, batch2, beta = 1, alpha = 1 }) => plus(times(self, beta), times(product(batch1, batch2), alpha)) },
  softmax: { forward: ({ self, dim }) => { const [shifted, sums] = shiftedExponents(self, dim); return mapped((x, y) => Math.exp(x) / y, shifted, sums); },
    backward: { self: (grad, { result, dim }) => { const weighted = times(grad, result); return minus(weighted, times(result, summed(weighted, dim))); } } },
  _safe_softmax: { choose: () => wholes.softmax },
  log_softmax: { forward: ({ self, dim }) => { const [shifted, sums] = shiftedExponents(self, dim); return mapped((x, y) => x - Math.log(y), shifted, sums); },
    backward: { self: (grad, { result, dim }) => minus(grad, times(mapped(Math.exp, result), summed(grad, dim))) } },
  mse_loss: loss(({ self, target }) => mapped((x, y) => (x - y) ** 2, self, target)),
  smooth_l1_loss: loss(({ self, target, beta }) => mapped((x, y) => { const gap = Math.abs(x - y); return gap < beta ? (gap * gap) / (2 * beta) : gap - beta / 2; }, self, target)),
  huber_loss: loss(({ self, target, delta }) => mapped((x, y) => { const gap = Math.abs(x - y); return gap <= delta ? (gap * gap) / 2 : delta * (gap - delta / 2); }, self, target)),
  binary_cross_entropy_with_logits: loss(({ self, target, weight = 1, pos_weight: positive = 1 }) => times(weight,
    plus(times(minus(1, target), self), times(mapped((p, t) => 1 + (p - 1) * t, positive, target), mapped((x) => Math.log1p(Math.exp(-Math.abs(x))) + Math.max(-x, 0), self))))),
  binary_cross_entropy: { ...loss(({ self, target, weight = 1 }) => times(weight,
    mapped((x, y) => -(y * Math.max(Math.log(x), -100) + (1 - y) * Math.max(Math.log1p(-x), -100)), self, target))),
    backward: { self: (grad, names) => times(weighed(grad, names), times(names.weight ?? 1,
      mapped((x, y) => (x - y) / Math.max((1 - x) * x, 1e-12), names.self, names.target))) } },
  nll_loss: { forward: (names, shape) => {
    const chosen = classes(names), parts = chosen.map(({ place, weight }) => (weight ? -weight * names.self.data[place] : 0));
    if (!names.reduction) return { shape, data: parts };
    const sum = parts.reduce((all, each) => all + each, 0), weights = chosen.reduce((all, { weight }) => all + weight, 0);
    return { shape, data: [names.reduction === 1 ? sum / weights : sum] };
  }, backward: { self: (grad, names) => {
    const chosen = classes(names), made = filled(names.self.shape, 0), weights = chosen.reduce((all, { weight }) => all + weight, 0);
    chosen.forEach(({ place, weight }, at) => { if (weight) made.data[place] -= (grad.data[names.reduction ? 0 : at] * weight) / (names.reduction === 1 ? weights : 1); });
    return made;
  } } },
  native_layer_norm: affine, native_batch_norm: affine,
  convolution: { allowed: ({ geometry }) => !geometry.transposed,
    forward: (names, shape) => {
      const made = filled(shape, 0);
      convolving(names, shape, (out, place, tap) => { made.data[out] += names.input.data[place] * names.weight.data[tap]; });
      return names.bias ? plus(made, channels(names.bias, shape)) : made;
    },
    backward: { input: (grad, names) => overWindows(grad, names, "input", "weight"), weight: (grad, names) => overWindows(grad, names, "weight", "input"),
      bias: (grad, { bias }) => reshaped(summedTo(grad, channels(bias, grad.shape).shape), bias.shape) } },
  erf: { backward: { self: (grad, { self }) => times(grad, mapped((x) => (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x), self)) } },
  gelu: { backward: { self: (grad, { self, approximate }) => times(grad, mapped((x) => {
    if (approximate !== "tanh") return 0.5 * (1 + erf(x / Math.SQRT2)) + (x * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
    const level = Math.tanh(bend(x));
    return 0.5 * (1 + level) + 0.5 * x * (1 - level * level) * Math.sqrt(2 / Math.PI) * (1 + 3 * 0.044715 * x * x);
  }, self)) } },
};

// What is known of a node's operation; of some it depends on how it was called.
function wholeOf(node) {
  const found = computes(wholes, node.op || "");
  return found?.choose ? found.choose(node.arguments) : found;
}

// The function that computes a node's result from what it was called with, null where there is none.
function forward(node) {
  const whole = wholeOf(node);
  if (whole?.forward) return !whole.allowed || whole.allowed(node.arguments) ? whole.forward : null;
  const named = computes(forwards, node.op || "");
  if (named) return (names) => { const keys = Object.keys(names).filter((key) => key !== "result"); return mapped((...values) => named(Object.fromEntries(keys.map((key, at) => [key, values[at]]))), ...keys.map((key) => names[key])); };
  const direct = computes(functions, node.op || "");
  return direct ? (names) => mapped(direct, ...node.order.map((name) => names[name])) : null;
}

// --- nodes ---------------------------------------------------------------------------------------

const isWhole = (value) => [value].flat(Infinity).every((each) => typeof each === "number" || typeof each === "boolean");
const elementsOf = (node) => node.data ?? node.value;

// Whether a node can be computed anew, and what it passes on.
function computable(id) {
  const node = page.nodes[id];
  if (node.leaf) return isWhole(elementsOf(node));
  if (!node.op || node.operands.some((operand) => operand.value === null)) return false;
  if (node.places) return true;
  const own = wholeOf(node)?.backward || {};
  return Boolean(forward(node)) && Object.entries(node.rules || {}).every(([edge, rule]) => node.inputs[edge] in own || known(rule));
}

const given = (value) => {
  if (Array.isArray(value)) return value.map(given);
  if (value === null || typeof value !== "object") return value;
  return "tensor" in value ? tensor(value.tensor, value.shape) : Object.fromEntries(Object.entries(value).map(([key, each]) => [key, given(each)]));
};

// What a node's rules call its operands, its result and its arguments; `values` has the outputs of
// each node.
function namesOf(id, values) {
  const node = page.nodes[id], names = {};
  for (const [name, value] of Object.entries(node.arguments)) names[name] = value?.compare ? conditionOf(value, values) : given(value);
  node.operands.forEach((operand, place) => { if (Object.keys(operand).length) names[node.inputs[place]] = operandOf(operand, values); });
  return values[id] ? { ...names, result: values[id][0] } : names;
}

// A condition that values of other nodes decide, as 1 and 0.
const conditionOf = ({ compare, operands }, values) => mapped((...each) => Number(operators[compare](...each)), ...operands.map((each) => (each.compare ? conditionOf(each, values) : operandOf(each, values))));
const operandOf = (operand, values) => ("node" in operand ? values[operand.node][operand.output] : given(operand.value));

const rounded = (value, dtype) => (dtype === "float32" ? mapped(Math.fround, value) : value);
const precise = (dtype) => { kept = dtype === "float32" ? Math.fround : (x) => x; };

function outputsOf(id, values) {
  const node = page.nodes[id];
  if (!node.places) {
    const made = forward(node)(namesOf(id, values), node.shape);
    return wholeOf(node)?.several ? made : [made];
  }
  const elements = node.operands.flatMap((operand) => lift(operandOf(operand, values)).data);
  return node.places.map((places, output) => ({ shape: node.shapes?.[output] ?? node.shape, data: places.map((place) => (place ? elements[place - 1] : 0)) }));
}

// What an operand receives: from an operation that moves elements, each element where it came from.
function passedOn(id, edge, values, grads) {
  const node = page.nodes[id], operands = node.operands;
  if (!node.places) {
    const names = namesOf(id, values), own = computes(wholeOf(node)?.backward || {}, node.inputs[edge]);
    return lift(own ? own(wholeOf(node).several ? grads : grads[0], names) : evaluated(node.rules[edge], { ...names, grad: grads[0] }));
  }
  const sizes = operands.map((operand) => lift(operandOf(operand, values)).data.length);
  const first = sizes.slice(0, edge).reduce((all, each) => all + each, 0), made = filled(lift(operandOf(operands[edge], values)).shape, 0);
  node.places.forEach((places, output) => {
    if (grads[output]) places.forEach((place, at) => { if (place > first && place <= first + sizes[edge]) made.data[place - 1 - first] += grads[output].data[at]; });
  });
  return made;
}

const LARGEST_SHOWN = 24;
const plain = (value) => (value.data.length <= LARGEST_SHOWN ? nested(value) : { shape: value.shape, norm: brief(Math.hypot(...value.data)) });

// The output of a node whose value is shown: the one that is read.
const shownOutput = (id) => (id === page.root ? page.output : page.rows.find((row) => row.kind === "edge" && row.to === id)?.output_nr ?? 0);

// Both passes once more, for other values of the leaves: as the engine does it, row by row.
function recompute(leaves) {
  const values = {}, sums = {}, waiting = {}, gradient = (id, output) => (sums[id] ||= [])[output];
  for (const id of page.forward) {
    const node = page.nodes[id];
    precise(node.dtype);
    values[id] = (node.leaf ? [leaves[id]] : outputsOf(id, values)).map((each) => rounded(each, node.dtype));
    if (node.value !== null) node.value = plain(values[id][shownOutput(id)]);
  }
  sums[page.rows[0].node] = [];
  sums[page.rows[0].node][page.output] = rounded(tensor(page.seed ?? 1), page.nodes[page.root].dtype);
  for (const row of page.rows) {
    const node = page.nodes[row.node];
    precise(node.dtype);
    if (row.kind === "node") row.gradients_in = row.gradients_in.map((_, output) => (gradient(row.node, output) ? plain(sums[row.node][output]) : null));
    if (row.kind === "edge" && row.product !== null) {  // null: nothing flows there
      const target = page.nodes[row.to], grads = sums[row.node], shape = target.shapes?.[row.output_nr] ?? target.shape;
      const flowed = rounded(passedOn(row.node, row.edge, values, grads), node.dtype), fitted = rounded(summedTo(flowed, shape), target.dtype);
      row.product = plain(flowed);
      if (row.derivative && known(node.rules[row.edge])) row.local = plain(expanded(evaluated(node.rules[row.edge], { ...namesOf(row.node, values), grad: 1 }), node.shape));
      if (gradient(row.to, row.output_nr)) (waiting[row.to] ||= []).push([row.output_nr, fitted]);
      else sums[row.to][row.output_nr] = fitted;
      row.fitted = plain(fitted);
    }
    if (row.kind === "sum_to") row.value = edgeRows.get(`${row.node},${row.edge}`).fitted;
    if (row.kind === "meet") {
      const [output, arriving] = waiting[row.node].shift(), old = sums[row.node][output];
      sums[row.node][output] = rounded(plus(old, arriving), node.dtype);
      [row.old, row.incoming, row.new] = [old, arriving, sums[row.node][output]].map(plain);
    }
    if (row.kind === "leaf") row.new = row.incoming = plain(sums[row.node][0]);
  }
  for (const id of page.forward) {
    const found = (sums[id] || []).filter(Boolean);
    if (page.nodes[id].gradient !== null) page.nodes[id].gradient = found.length === 1 ? plain(found[0]) : null;
  }
}

// Whether the page computes what the run did, to single precision: of arrays that it does not have
// it compares the norms. What is shown stays what the run found.
function agrees(leaves) {
  const numbers = (value) => (value?.norm !== undefined ? [Number(value.norm)] : [value].flat(Infinity).map(Number));
  const same = (old, now) => {
    if (old === null || now === null) return old === now;
    const [before, after] = [old, now].map(numbers), room = 2e-3 * Math.max(0, ...before.filter(Number.isFinite).map(Math.abs)) + 1e-6;
    return before.every((each, place) => Object.is(each, after[place]) || Math.abs(each - after[place]) <= room);
  };
  const parts = [...page.forward.map((id) => page.nodes[id]), ...page.rows], before = parts.map((part) => ({ ...part }));
  recompute(leaves);
  const found = page.forward.every((id, at) => same(before[at].value, page.nodes[id].value) && same(before[at].gradient, page.nodes[id].gradient));
  parts.forEach((part, at) => Object.assign(part, before[at]));
  return found;
}
