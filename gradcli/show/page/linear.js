// --- linear systems --------------------------------------------------------------------------------
// Square matrices, and batches of them, by elimination with the largest element as pivot, in the
// precision of the node.

// Make the square part of rows upper triangular; gives its determinant.
function eliminate(rows) {
  let determinant = 1;
  for (let at = 0; at < rows.length; at++) {
    const below = rows.map((_, row) => row).slice(at);
    const best = below.reduce((one, other) => (Math.abs(rows[other][at]) > Math.abs(rows[one][at]) ? other : one));
    if (best !== at) { [rows[at], rows[best]] = [rows[best], rows[at]]; determinant = -determinant; }
    const pivot = rows[at][at];
    determinant = kept(determinant * pivot);
    for (let row = at + 1; pivot && row < rows.length; row++) {
      const factor = kept(rows[row][at] / pivot);
      if (factor) rows[row].forEach((_, column) => { rows[row][column] = kept(rows[row][column] - kept(factor * rows[at][column])); });
    }
  }
  return determinant;
}

// The rows of the matrix of a number in a batch.
function rowsOf({ shape, data }, number) {
  const [height, width] = shape.slice(-2);
  return Array.from({ length: height }, (_, row) => data.slice((number * height + row) * width, (number * height + row + 1) * width));
}

// What the left matrices are to be multiplied with to give the right ones.
function solved(left, right) {
  const size = left.shape.at(-1), batches = [left, right].map((each) => each.shape.slice(0, -2)), batch = broadcastShape(batches);
  const [lefts, rights] = batches.map((each) => indices(each, batch)), data = [];
  for (let number = 0; number < sizeOf(batch); number++) {
    const beside = rowsOf(right, rights[number]), rows = rowsOf(left, lefts[number]).map((row, at) => [...row, ...beside[at]]);
    eliminate(rows);
    for (let at = size - 1; at >= 0; at--) {
      for (let column = size; column < rows[at].length; column++) {
        for (let known = at + 1; known < size; known++) rows[at][column] -= rows[at][known] * rows[known][column];
        rows[at][column] /= rows[at][at];
      }
    }
    for (const row of rows) data.push(...row.slice(size));
  }
  return { shape: [...batch, size, right.shape.at(-1)], data };
}

function inverse(matrix) {
  const size = matrix.shape.at(-1);
  return solved(matrix, { shape: [size, size], data: Array.from({ length: size * size }, (_, at) => Number(at % (size + 1) === 0)) });
}
const opposite = (value) => times(value, -1);
const asColumn = (value, isVector) => (isVector ? reshaped(value, [...value.shape, 1]) : value);

function determinants(matrix) {
  const shape = matrix.shape.slice(0, -2);
  return { shape, data: Array.from({ length: sizeOf(shape) }, (_, number) => eliminate(rowsOf(matrix, number))) };
}
// How a determinant changes with the elements of its matrix; of a singular one PyTorch says 0.
const slopes = (matrix, found) => mapped((each, x) => (each === 0 ? 0 : each * x), reshaped(found, [...found.shape, 1, 1]), turned(inverse(matrix)));

// The gradient of the right side of `A X = B`, or of `X A = B`.
function backThrough(grad, { A, left, vector }) {
  const given = asColumn(grad, vector);
  return left ? solved(turned(A), given) : turned(solved(A, turned(given)));
}

// The triangle below the diagonal, with it or without.
const lower = ({ shape, data }, beside = 0) => ({ shape, data: data.map((each, at) => (Math.floor(at / shape.at(-1)) % shape.at(-2) >= (at % shape.at(-1)) + beside ? each : 0)) });

// Of symmetric matrices, of which one triangle is read, the lower triangular ones whose product with
// themselves turned they are.
function cholesky(matrix) {
  const size = matrix.shape.at(-1), data = [];
  for (let number = 0; number < sizeOf(matrix.shape.slice(0, -2)); number++) {
    const rows = rowsOf(matrix, number);
    for (let row = 0; row < size; row++) {
      for (let column = 0; column < size; column++) {
        if (column > row) { rows[row][column] = 0; continue; }
        let rest = rows[row][column];
        for (let at = 0; at < column; at++) rest = kept(rest - kept(rows[row][at] * rows[column][at]));
        rows[row][column] = kept(row === column ? Math.sqrt(rest) : rest / rows[column][column]);
      }
      data.push(...rows[row]);
    }
  }
  return { shape: matrix.shape, data };
}
const factoring = {
  forward: ({ self, upper }) => (upper ? turned(cholesky(turned(self))) : cholesky(self)),
  backward: { self: (grad, { result, upper }) => {
    const [factor, given] = [result, grad].map((each) => (upper ? turned(each) : each)), inner = lower(product(turned(factor), given));
    const both = solved(turned(factor), times(plus(inner, turned(lower(inner, 1))), 0.5));
    return turned(solved(turned(factor), turned(both)));
  } },
};

const linear = {
  linalg_cholesky_ex: factoring, cholesky: factoring,
  linalg_slogdet: {
    several: true,
    forward: ({ A }) => { const found = determinants(A); return [mapped(Math.sign, found), mapped((x) => Math.log(Math.abs(x)), found)]; },
    backward: { A: ([, grad], { A }) => times(reshaped(grad, [...grad.shape, 1, 1]), turned(inverse(A))) },
  },
  linalg_det: { forward: ({ A }) => determinants(A), backward: { A: (grad, { A, result }) => times(reshaped(grad, [...grad.shape, 1, 1]), slopes(A, result)) } },
  linalg_inv_ex: { forward: ({ A }) => inverse(A), backward: { A: (grad, { result }) => opposite(product(product(turned(result), grad), turned(result))) } },
  linalg_solve_ex: {
    forward: ({ A, B, left, vector }, shape) => {
      const given = asColumn(B, vector);
      return reshaped(left ? solved(A, given) : turned(solved(turned(A), turned(given))), shape);
    },
    backward: {
      B: (grad, names) => reshaped(backThrough(grad, names), grad.shape),
      A: (grad, names) => {
        const back = backThrough(grad, names), made = turned(asColumn(names.result, names.vector));
        return opposite(names.left ? product(back, made) : product(made, back));
      },
    },
  },
};
