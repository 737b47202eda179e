/* Products of matrices of middle sizes, in tiles that are kept in registers. Every element is summed
 * in one order, so threads share out the work without changing a bit. BLAS would first copy both
 * matrices; here the right one is turned where its columns are no vectors, and that is all. */

enum { LOCAL(TALL) = LOCAL(CHANNELS), LOCAL(MANY) = 32, LOCAL(DEEP) = 128 };

typedef struct {
    const float *left, *right;
    float *out, *turned;
    int64_t rows, inner, columns; /* of the left matrix, of both, of the right one */
    int64_t row, step;            /* how far rows, and elements of a row, of the left one are apart */
    int64_t strip, line;          /* how far strips of the right one, and their rows, are apart */
    int64_t pieces;               /* of work in a strip */
} LOCAL(Product);

/* A tile: rows of the left matrix times a strip of the right one. Long sums are taken in parts, for
 * the last digits. */
INLINE void LOCAL(tile)(const LOCAL(Product) *p, const float *left, const float *right, float *out,
                        int64_t apart)
{
    enum { TALL = LOCAL(TALL), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN), PART = 256 };
    int64_t row = p->row, step = p->step, line = p->line;
    for (int64_t start = 0; start < p->inner; start += PART) {
        int64_t stop = start + PART < p->inner ? start + PART : p->inner;
        float total[TALL][RUN];
        memset(total, 0, sizeof total);
        for (int64_t k = start; k < stop; k++) {
            const float *run = right + k * line, *each = left + k * step;
            UNROLLED(8)
            for (int i = 0; i < TALL; i++)
                UNROLLED(3)
                for (int part = 0; part < RUN; part += VECTOR)
                    for (int j = part; j < part + VECTOR; j++)
                        total[i][j] = LOCAL(fma)(each[i * row], run[j], total[i][j]);
        }
        for (int i = 0; i < TALL; i++)
            for (int j = 0; j < RUN; j++)
                out[i * apart + j] = total[i][j] + (start ? out[i * apart + j] : 0);
    }
}

/* Some tiles of a strip, one below the other. The last ones, and the last strip, begin where they end
 * with the matrix: what those before have made is left alone. */
static void LOCAL(multiply_piece)(void *given, int64_t number)
{
    enum { TALL = LOCAL(TALL), RUN = LOCAL(RUN) };
    const LOCAL(Product) *p = given;
    int64_t strip = number / p->pieces, column = strip * RUN, across = column + RUN - p->columns;
    int64_t first = number % p->pieces * LOCAL(MANY), end = first + LOCAL(MANY);
    across = across > 0 ? across : 0;
    const float *right = p->turned ? p->turned + strip * p->strip : p->right + column - across;
    for (int64_t i = first; i < end && i < p->rows; i += TALL) {
        float edge[TALL * RUN], *out = p->out + i * p->columns + column;
        int64_t down = i + TALL > p->rows ? i + TALL - p->rows : 0;
        const float *left = p->left + (i - down) * p->row;
        if (!down && !across) {
            LOCAL(tile)(p, left, right, out, p->columns);
            continue;
        }
        LOCAL(tile)(p, left, right, edge, RUN);
        for (int64_t k = down; k < TALL; k++)
            memcpy(out + (k - down) * p->columns, edge + k * RUN + across,
                   (size_t)(RUN - across) * sizeof *out);
    }
}

/* Rows of a vector's length, `apart` from each other, as columns of rows of a strip. */
static void LOCAL(turn_rows)(const float *from, int64_t apart, int64_t length, float *to)
{
    enum { RUN = LOCAL(RUN), VECTOR = LOCAL(VECTOR) };
    int64_t k = 0;
#if defined(__AVX512F__)
    for (; k + 4 <= length; k += 4) { /* four elements of sixteen rows */
        __m512 four[4];
        for (int j = 0; j < 4; j++) {
            const float *row = from + j * apart + k;
            __m512 whole = _mm512_castps128_ps512(_mm_loadu_ps(row));
            whole = _mm512_insertf32x4(whole, _mm_loadu_ps(row + 4 * apart), 1);
            whole = _mm512_insertf32x4(whole, _mm_loadu_ps(row + 8 * apart), 2);
            four[j] = _mm512_insertf32x4(whole, _mm_loadu_ps(row + 12 * apart), 3);
        }
        /* Each lane of `four` has rows j, j + 4, j + 8 and j + 12 */
        __m512 low = _mm512_unpacklo_ps(four[0], four[1]), high = _mm512_unpackhi_ps(four[0], four[1]);
        __m512 less = _mm512_unpacklo_ps(four[2], four[3]), more = _mm512_unpackhi_ps(four[2], four[3]);
        float *out = to + k * RUN;
        _mm512_storeu_ps(out, _mm512_shuffle_ps(low, less, 0x44));
        _mm512_storeu_ps(out + RUN, _mm512_shuffle_ps(low, less, 0xEE));
        _mm512_storeu_ps(out + 2 * RUN, _mm512_shuffle_ps(high, more, 0x44));
        _mm512_storeu_ps(out + 3 * RUN, _mm512_shuffle_ps(high, more, 0xEE));
    }
#endif
    for (; k < length; k++)
        for (int j = 0; j < VECTOR; j++) to[k * RUN + j] = from[j * apart + k];
}

/* Part of a strip of the right matrix, turned. */
static void LOCAL(turn_piece)(void *given, int64_t number)
{
    enum { RUN = LOCAL(RUN), VECTOR = LOCAL(VECTOR), DEEP = LOCAL(DEEP) };
    const LOCAL(Product) *p = given;
    int64_t parts = (p->inner + DEEP - 1) / DEEP, strip = number / parts, k = number % parts * DEEP;
    int64_t column = strip * RUN, length = p->inner - k < DEEP ? p->inner - k : DEEP;
    if (column > p->columns - RUN) column = p->columns - RUN;
    for (int j = 0; j < RUN; j += VECTOR)
        LOCAL(turn_rows)(p->right + (column + j) * p->inner + k, p->inner, length,
                         p->turned + strip * p->strip + k * RUN + j);
}

/* matrix_product(left, right, out, rows, inner, columns, turned, threads): the left matrix (rows,
 * inner) times the right one (inner, columns). Where `turned` is 1 the left one lies as its
 * transpose, where it is 2 the right one. */
KERNEL(matrix_product)
{
    enum { RUN = LOCAL(RUN), DEEP = LOCAL(DEEP), MANY = LOCAL(MANY), LINE = 64 };
    int64_t turned = N(6), rows = N(3), inner = N(4), columns = N(5);
    NEED(turned >= 0 && turned <= 2 && inner > 0 && rows >= LOCAL(TALL) && columns >= RUN);
    NEED(rows < 1 << 24 && inner < 1 << 24 && columns < 1 << 24);
    NEED(N(0) == rows * inner && N(1) == inner * columns && N(2) == rows * columns);
    int64_t strips = (columns + RUN - 1) / RUN;
    LOCAL(Product) p = {F(0), F(1), F(2), NULL, rows, inner, columns, inner, 1, 0, columns, 0};
    if (turned == 1) p.row = 1, p.step = rows;
    void *memory = NULL;
    if (turned == 2) {
        p.strip = inner * RUN;
        p.line = RUN;
        memory = malloc((size_t)(strips * p.strip) * sizeof(float) + LINE);
        if (!memory) return NO_MEMORY;
        p.turned = (float *)(((uintptr_t)memory + LINE - 1) / LINE * LINE);
        share(LOCAL(turn_piece), &p, strips * ((inner + DEEP - 1) / DEEP), N(7));
    }
    p.pieces = (rows + MANY - 1) / MANY;
    share(LOCAL(multiply_piece), &p, strips * p.pieces, N(7));
    free(memory);
    return NULL;
}
