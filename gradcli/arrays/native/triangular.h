/* Substitution and the Cholesky decomposition, of what elements are REAL; names are NAMED and KERNEL_OF.
 * A block of rows is known when what the rows before it have to do with it is subtracted: a product,
 * in tiles that are kept in registers, of which every sum is in one order. */

enum { NAMED(VECTOR) = LOCAL(VECTOR) * (int)sizeof(float) / (int)sizeof(REAL) };
enum { NAMED(RUN) = 3 * NAMED(VECTOR), NAMED(TALL) = LOCAL(CHANNELS) };

INLINE REAL NAMED(add_product)(REAL a, REAL b, REAL c)
{
#ifdef HAS_FMA
    return FMA(a, b, c);
#else
    return a * b + c;
#endif
}

/* Subtract from rows the products of `count` others with the factors of each row. Sums of many are
 * taken in parts, for the last digits. */
INLINE void NAMED(subtract_tile)(const REAL *factors, int64_t row, int64_t step, const REAL *known,
                                 int64_t line, int64_t count, REAL *rows, int64_t apart,
                                 const int vectors)
{
    enum { TALL = NAMED(TALL), VECTOR = NAMED(VECTOR), RUN = NAMED(RUN), HALF = TALL / 2, PART = 128 };
    for (int64_t start = 0; start < count; start += PART) {
        int64_t stop = start + PART < count ? start + PART : count;
        REAL total[TALL][RUN];
        memset(total, 0, sizeof total);
        const REAL *run = known + start * line, *above = factors + start * step;
        const REAL *below = above + HALF * row;
        for (int64_t k = start; k < stop; k++, run += line, above += step, below += step) {
            UNROLLED(8)
            for (int i = 0; i < TALL; i++)
                UNROLLED(3)
                for (int part = 0; part < vectors * VECTOR; part += VECTOR)
                    for (int j = part; j < part + VECTOR; j++)
                        total[i][j] = NAMED(add_product)((i < HALF ? above : below)[i % HALF * row], run[j],
                                                         total[i][j]);
        }
        UNROLLED(8)
        for (int i = 0; i < TALL; i++) {
            REAL *out = rows + i * apart;
            for (int j = 0; j < vectors * VECTOR; j++) total[i][j] = out[j] - total[i][j];
            EACH_APART
            for (int j = 0; j < vectors * VECTOR; j++) out[j] = total[i][j];
        }
    }
}

/* --- substitution ------------------------------------------------------------------------------- */

enum { NAMED(LARGEST) = 512 }; /* unknowns of a strip, which is kept on a thread's stack */

typedef struct {
    const REAL *triangles, *right;
    REAL *out;
    int64_t size, columns, upper, unit, strips;
    int64_t row, step;                       /* how far rows, and elements of a row, of a triangle are apart */
    int64_t right_row, right_step, out_row, out_step; /* and of the right-hand sides and solutions */
} NAMED(Substitution);

/* Rows of a strip that nothing but themselves is left of, solved in registers. */
INLINE void NAMED(solve_tile)(const REAL *triangle, int64_t row, int64_t step, int64_t unit, REAL *x,
                              const int tall, const int vectors)
{
    enum { TALL = NAMED(TALL), VECTOR = NAMED(VECTOR), RUN = NAMED(RUN) };
    REAL rows[TALL][RUN];
    UNROLLED(8)
    for (int i = 0; i < tall; i++)
        for (int j = 0; j < vectors * VECTOR; j++) rows[i][j] = x[i * RUN + j];
    UNROLLED(8)
    for (int k = 0; k < tall; k++) {
        REAL pivot = unit ? 1 : triangle[k * (row + step)];
        for (int j = 0; j < vectors * VECTOR; j++) rows[k][j] /= pivot;
        UNROLLED(8)
        for (int i = k + 1; i < tall; i++) {
            REAL factor = -triangle[i * row + k * step];
            for (int j = 0; j < vectors * VECTOR; j++)
                rows[i][j] = NAMED(add_product)(factor, rows[k][j], rows[i][j]);
        }
    }
    UNROLLED(8)
    for (int i = 0; i < tall; i++)
        for (int j = 0; j < vectors * VECTOR; j++) x[i * RUN + j] = rows[i][j];
}

/* The solutions of a strip, row by row in `x`, of which so many come first that all others are
 * tiles. */
INLINE void NAMED(solve_strip)(const REAL *triangle, int64_t row, int64_t step, int64_t size, int64_t unit,
                               REAL *x, const int vectors)
{
    enum { TALL = NAMED(TALL), RUN = NAMED(RUN) };
    int64_t first = size % TALL;
    for (int64_t k = 0; k < first; k++) {
        for (int64_t i = 0; i < k; i++)
            for (int j = 0; j < vectors * NAMED(VECTOR); j++)
                x[k * RUN + j] = NAMED(add_product)(-triangle[k * row + i * step], x[i * RUN + j], x[k * RUN + j]);
        NAMED(solve_tile)(triangle + k * (row + step), row, step, unit, x + k * RUN, 1, vectors);
    }
    for (; first < size; first += TALL) {
        NAMED(subtract_tile)(triangle + first * row, row, step, x, RUN, first, x + first * RUN, RUN, vectors);
        NAMED(solve_tile)(triangle + first * (row + step), row, step, unit, x + first * RUN, TALL, vectors);
    }
}

/* Each alone, so that its sums have all registers. */
APART void NAMED(solve_3)(const REAL *triangle, int64_t row, int64_t step, int64_t size, int64_t unit, REAL *x)
{
    NAMED(solve_strip)(triangle, row, step, size, unit, x, 3);
}

APART void NAMED(solve_1)(const REAL *triangle, int64_t row, int64_t step, int64_t size, int64_t unit, REAL *x)
{
    NAMED(solve_strip)(triangle, row, step, size, unit, x, 1);
}

/* The solutions of a strip of right-hand sides. An upper triangle is a lower one from its end. */
static void NAMED(substitute_strip)(void *given, int64_t number)
{
    enum { VECTOR = NAMED(VECTOR), RUN = NAMED(RUN) };
    const NAMED(Substitution) *s = given;
    int64_t size = s->size, each = number / s->strips, from = number % s->strips * RUN;
    int64_t count = s->columns - from < RUN ? s->columns - from : RUN, width = count > VECTOR ? RUN : VECTOR;
    int64_t row = s->row, step = s->step, last = s->upper ? size - 1 : 0, turn = s->upper ? -1 : 1;
    const REAL *triangle = s->triangles + each * size * size + last * (row + step);
    const REAL *right = s->right + each * size * s->columns + from * s->right_step;
    REAL *out = s->out + each * size * s->columns + from * s->out_step, x[NAMED(LARGEST) * RUN];
    for (int64_t i = 0; i < size; i++) {
        const REAL *from_row = right + (last + turn * i) * s->right_row;
        if (s->right_step == 1) memcpy(x + i * RUN, from_row, (size_t)count * sizeof *x);
        else
            for (int64_t j = 0; j < count; j++) x[i * RUN + j] = from_row[j * s->right_step];
        for (int64_t j = count; j < width; j++) x[i * RUN + j] = 0;
    }
    (width == RUN ? NAMED(solve_3) : NAMED(solve_1))(triangle, turn * row, turn * step, size, s->unit, x);
    for (int64_t i = 0; i < size; i++) {
        REAL *out_row = out + (last + turn * i) * s->out_row;
        if (s->out_step == 1) memcpy(out_row, x + i * RUN, (size_t)count * sizeof *x);
        else
            for (int64_t j = 0; j < count; j++) out_row[j * s->out_step] = x[i * RUN + j];
    }
}

/* substitute(triangles, right, out, size, columns, upper, unit, turned, right_turned, out_turned,
 * threads): the solutions of triangular systems with right-hand sides of some columns. What is
 * `turned` lies column by column. */
KERNEL_OF(substitute)
{
    enum { RUN = NAMED(RUN) };
    int64_t size = N(3), columns = N(4);
    NEED(size > 0 && size <= NAMED(LARGEST) && columns > 0 && columns < 1 << 24);
    NEED(N(0) % (size * size) == 0);
    int64_t total = N(0) / (size * size);
    NEED(N(1) == total * size * columns && N(2) == N(1));
    NAMED(Substitution) s = {a[0].data, a[1].data, a[2].data, size, columns, N(5), N(6), 0,
                             size, 1, columns, 1, columns, 1};
    s.strips = (columns + RUN - 1) / RUN;
    if (N(7)) s.row = 1, s.step = size;
    if (N(8)) s.right_row = 1, s.right_step = size;
    if (N(9)) s.out_row = 1, s.out_step = size;
    share(NAMED(substitute_strip), &s, total * s.strips, N(10));
    return NULL;
}

/* --- the Cholesky decomposition ----------------------------------------------------------------- */

#ifdef IS_WIDE
APART void NAMED(subtract_3)(const REAL *factors, int64_t row, int64_t step, const REAL *known, int64_t line,
                             int64_t count, REAL *rows, int64_t apart)
{
    NAMED(subtract_tile)(factors, row, step, known, line, count, rows, apart, 3);
}

/* row -= factor * other */
INLINE void NAMED(subtract_row)(REAL factor, const REAL *other, REAL *row, int64_t length)
{
    EACH_APART
    for (int64_t j = 0; j < length; j++) row[j] = NAMED(add_product)(-factor, other[j], row[j]);
}

/* The upper factor of a matrix in rows of `line`, of which the upper triangle is given; the order of
 * the first leading minor that is not positive, or 0. */
static int64_t NAMED(decompose)(REAL *upper, int64_t size, int64_t line)
{
    enum { TALL = NAMED(TALL), RUN = NAMED(RUN) };
    for (int64_t first = 0, tall = size % TALL; first < size; first += tall, tall = TALL) {
        if (!tall) continue;
        REAL *rows = upper + first * line;
        for (int64_t column = first; column < size && first; column += RUN)
            NAMED(subtract_3)(upper + first, 1, line, upper + column, line, first, rows + column, line);
        for (int64_t k = first; k < first + tall; k++) {
            REAL *row = upper + k * line, pivot = row[k];
            if (!(pivot > 0 && pivot <= DBL_MAX)) return k + 1;
            REAL root = sqrt(pivot);
            for (int64_t j = k; j < size; j++) row[j] /= root;
            for (int64_t i = k + 1; i < first + tall; i++)
                NAMED(subtract_row)(row[i], row + i, upper + i * line + i, size - i);
        }
    }
    return 0;
}
#endif

typedef struct {
    const REAL *matrices;
    REAL *out;
    int64_t *orders, size, turned;
    int failed;
} NAMED(Decomposition);

/* Sums are float64: those of float32 would be less exact than LAPACK's, which are of blocks. */
static void NAMED(decompose_one)(void *given, int64_t number)
{
    NAMED(Decomposition) *d = given;
    int64_t size = d->size, line = size + LOCAL(RUN_double); /* the last tile reaches beyond the row */
    int64_t row = d->turned ? 1 : size, step = d->turned ? size : 1;
    const REAL *matrix = d->matrices + number * size * size;
    REAL *out = d->out + number * size * size;
    double *upper = calloc((size_t)(size * line), sizeof *upper);
    if (!upper) {
        d->failed = 1;
        return;
    }
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j <= i; j++) upper[j * line + i] = matrix[i * row + j * step];
    d->orders[number] = LOCAL(decompose_double)(upper, size, line);
    for (int64_t i = 0; i < size; i++) {
        memset(out + i * size, 0, (size_t)i * sizeof *out);
        for (int64_t j = i; j < size; j++) out[i * size + j] = (REAL)upper[i * line + j];
    }
    free(upper);
}

/* cholesky(matrices, factors, orders, size, turned, threads): the lower factors of matrices, of which
 * the lower triangle is read, column by column; the order of the first leading minor of each that is
 * not positive and finite, or 0. Where `turned` is 1 the matrices too lie column by column. */
KERNEL_OF(cholesky)
{
    int64_t size = N(3);
    NEED(size > 0 && size < 1 << 14 && N(0) == N(1) && N(0) == N(2) * size * size);
    NAMED(Decomposition) d = {a[0].data, a[1].data, I(2), size, N(4), 0};
    share(NAMED(decompose_one), &d, N(2), N(5));
    return d.failed ? NO_MEMORY : NULL;
}
