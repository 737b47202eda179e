/* Products of matrices of middle sizes, in tiles that are kept in registers. Every element is summed
 * in one order, so threads share out the work without changing a bit. BLAS would first copy both
 * matrices; here the right one is turned where its columns are no vectors, and that is all. */

enum { LOCAL(TALL) = LOCAL(CHANNELS), LOCAL(DEEP) = 256 };

typedef struct {
    const float *left, *right;
    float *out;
    int64_t rows, inner, columns; /* of the left matrix, of both, of the right one */
    int64_t row, step;            /* how far rows, and elements of a row, of the left one are apart */
    int64_t line;                 /* how far rows of the right one are apart, 0 where it is turned */
    int64_t apart;                /* how far rows of the result are apart */
    int more;                     /* whether the sums are added to what is there */
    int64_t many, chunks, strips; /* rows of a piece, pieces above each other and side by side */
} LOCAL(Product);

/* What a tile reads and writes: a part of sums, which is added to what is there where `more`. */
typedef struct {
    const float *left, *right;
    int64_t line, count, apart;
    float *out;
    int more;
} LOCAL(Tile);

/* Rows of the left matrix times `vectors` of the right one. The rows are reached from two of them:
 * processors have few registers for addresses. */
INLINE void LOCAL(multiply_tile)(const LOCAL(Product) *p, const LOCAL(Tile) *t, const int vectors)
{
    enum { TALL = LOCAL(TALL), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN), HALF = TALL / 2 };
    float total[TALL][RUN];
    memset(total, 0, sizeof total);
    const float *run = t->right, *above = t->left, *below = t->left + HALF * p->row;
    int64_t row = p->row, step = p->step, line = t->line;
    for (int64_t k = 0; k < t->count; k++, run += line, above += step, below += step) {
        UNROLLED(8)
        for (int i = 0; i < TALL; i++)
            UNROLLED(3)
            for (int part = 0; part < vectors * VECTOR; part += VECTOR)
                for (int j = part; j < part + VECTOR; j++)
                    total[i][j] = LOCAL(fma)((i < HALF ? above : below)[i % HALF * row], run[j], total[i][j]);
    }
    UNROLLED(8)
    for (int i = 0; i < TALL; i++) {
        float *out = t->out + i * t->apart;
        for (int j = 0; t->more && j < vectors * VECTOR; j++) total[i][j] += out[j];
        EACH_APART
        for (int j = 0; j < vectors * VECTOR; j++) out[j] = total[i][j];
    }
}

/* Each alone, so that its sums have all registers. */
APART void LOCAL(multiply_3)(const LOCAL(Product) *p, const LOCAL(Tile) *t) { LOCAL(multiply_tile)(p, t, 3); }
APART void LOCAL(multiply_2)(const LOCAL(Product) *p, const LOCAL(Tile) *t) { LOCAL(multiply_tile)(p, t, 2); }
APART void LOCAL(multiply_1)(const LOCAL(Product) *p, const LOCAL(Tile) *t) { LOCAL(multiply_tile)(p, t, 1); }

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
#elif defined(__AVX2__)
    for (; k + 4 <= length; k += 4)
        for (int j = 0; j < VECTOR; j += 4) { /* four elements of four rows */
            __m128 four[4];
            for (int i = 0; i < 4; i++) four[i] = _mm_loadu_ps(from + (j + i) * apart + k);
            _MM_TRANSPOSE4_PS(four[0], four[1], four[2], four[3]);
            for (int i = 0; i < 4; i++) _mm_storeu_ps(to + (k + i) * RUN + j, four[i]);
        }
#endif
    for (; k < length; k++)
        for (int j = 0; j < VECTOR; j++) to[k * RUN + j] = from[j * apart + k];
}

/* Rows of a strip of columns, by parts of the sums, so that what is read of the right matrix stays
 * near. The last rows and columns are computed with those before them, which are left alone. */
static void LOCAL(multiply_piece)(void *given, int64_t number)
{
    enum { TALL = LOCAL(TALL), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN), DEEP = LOCAL(DEEP) };
    const LOCAL(Product) *p = given;
    int64_t strip = p->line ? number % p->strips : number / p->chunks;
    int64_t chunk = p->line ? number / p->strips : number % p->chunks;
    int64_t column = strip * RUN, left = p->columns - column < RUN ? p->columns - column : RUN;
    int64_t first = chunk * p->many, end = first + p->many < p->rows ? first + p->many : p->rows;
    int vectors = (int)((left + VECTOR - 1) / VECTOR);
    int64_t across = vectors * VECTOR - left;
    float turned[DEEP * RUN], edge[TALL * RUN];
    for (int64_t k = 0; k < p->inner; k += DEEP) {
        LOCAL(Tile) tile = {NULL, p->right + k * p->line + column - across, p->line, 0, 0, NULL, k || p->more};
        tile.count = p->inner - k < DEEP ? p->inner - k : DEEP;
        if (!p->line) {
            for (int64_t j = 0; j < vectors * VECTOR; j += VECTOR)
                LOCAL(turn_rows)(p->right + (column - across + j) * p->inner + k, p->inner, tile.count, turned + j);
            tile.right = turned;
            tile.line = RUN;
        }
        for (int64_t i = first; i < end; i += TALL) {
            int64_t down = i + TALL > p->rows ? i + TALL - p->rows : 0;
            float *out = p->out + i * p->apart + column;
            int is_edge = down || across;
            tile.left = p->left + (i - down) * p->row + k * p->step;
            tile.out = is_edge ? edge : out;
            tile.apart = is_edge ? RUN : p->apart;
            tile.more = (k || p->more) && !is_edge;
            if (vectors == 3) LOCAL(multiply_3)(p, &tile);
            else if (vectors == 2) LOCAL(multiply_2)(p, &tile);
            else LOCAL(multiply_1)(p, &tile);
            for (int64_t each = down; is_edge && each < TALL; each++)
                for (int64_t j = across; j < vectors * VECTOR; j++) {
                    float *element = out + (each - down) * p->apart + j - across;
                    *element = edge[each * RUN + j] + (k || p->more ? *element : 0);
                }
        }
    }
}

/* Part the rows and columns of a product; gives the number of its pieces. */
static int64_t LOCAL(pieces_of)(LOCAL(Product) *p)
{
    p->strips = (p->columns + LOCAL(RUN) - 1) / LOCAL(RUN);
    p->chunks = (p->rows + p->many - 1) / p->many;
    return p->strips * p->chunks;
}

/* matrix_product(left, right, out, rows, inner, columns, turned, threads): the left matrix (rows,
 * inner) times the right one (inner, columns). Where `turned` is 1 the left one lies as its
 * transpose, where it is 2 the right one. */
KERNEL(matrix_product)
{
    enum { RUN = LOCAL(RUN), TALL = LOCAL(TALL), FEW = 32, MANY = 128 };
    int64_t turned = N(6), rows = N(3), inner = N(4), columns = N(5);
    NEED(turned >= 0 && turned <= 2 && inner > 0 && rows >= TALL && columns >= RUN);
    NEED(rows < 1 << 24 && inner < 1 << 24 && columns < 1 << 24);
    NEED(N(0) == rows * inner && N(1) == inner * columns && N(2) == rows * columns);
    LOCAL(Product) p = {F(0), F(1), F(2), rows, inner, columns, inner, 1, columns, columns, 0, FEW, 0, 0};
    if (turned == 1) p.row = 1, p.step = rows;
    if (turned == 2) p.line = 0, p.many = MANY;
    share(LOCAL(multiply_piece), &p, LOCAL(pieces_of)(&p), N(7));
    return NULL;
}
