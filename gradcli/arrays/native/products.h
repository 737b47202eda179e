/* Products of matrices, in tiles that are kept in registers. Every element is summed in one order, so
 * threads share out the work without changing a bit. What many tiles read from far apart is laid side
 * by side first: a strip of the right matrix, and the left one where it lies as its transpose. */

enum { LOCAL(TALL) = LOCAL(CHANNELS), LOCAL(DEEP) = 256, LOCAL(MANY) = 64 };
enum { LOCAL(FAR_APART) = 512 }; /* elements between two rows, from which on they compete for the cache */

typedef struct {
    const float *left, *right;
    float *out;
    int64_t rows, inner, columns; /* of the left matrix, of both, of the right one */
    int64_t row, step;            /* how far rows, and elements of a row, of the left one are apart */
    int64_t line;                 /* how far rows of the right one are apart, 0 where it is turned */
    int64_t apart;                /* how far rows of the result are apart */
    int more;                     /* whether the sums are added to what is there */
    int64_t many, chunks;         /* rows of a piece, and pieces above each other */
    int64_t strips, wide, groups; /* strips, those of a piece, and pieces side by side */
} LOCAL(Product);

/* What a tile reads and writes: a part of sums, which is added to what is there where `more`. */
typedef struct {
    const float *left, *right;
    int64_t row, step, line, count, apart;
    float *out;
    int more;
} LOCAL(Tile);

/* Rows of the left matrix times `vectors` of the right one. The rows are reached from two of them:
 * processors have few registers for addresses. */
INLINE void LOCAL(multiply_tile)(const LOCAL(Tile) *t, const int vectors)
{
    enum { TALL = LOCAL(TALL), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN), HALF = TALL / 2 };
    float total[TALL][RUN];
    memset(total, 0, sizeof total);
    const float *run = t->right, *above = t->left, *below = t->left + HALF * t->row;
    int64_t row = t->row, step = t->step, line = t->line;
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
APART void LOCAL(multiply_3)(const LOCAL(Tile) *t) { LOCAL(multiply_tile)(t, 3); }
APART void LOCAL(multiply_2)(const LOCAL(Tile) *t) { LOCAL(multiply_tile)(t, 2); }
APART void LOCAL(multiply_1)(const LOCAL(Tile) *t) { LOCAL(multiply_tile)(t, 1); }

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

/* Part of the columns of a left matrix that lies as its transpose, tile by tile. */
static void LOCAL(pack_left)(const LOCAL(Product) *p, int64_t first, int64_t end, int64_t k, int64_t count, float *to)
{
    enum { TALL = LOCAL(TALL) };
    for (int64_t each = 0; each < count; each++) {
        const float *from = p->left + (k + each) * p->step;
        for (int64_t i = first; i < end; i += TALL) {
            int64_t top = i + TALL > p->rows ? p->rows - TALL : i;
            memcpy(to + (i - first) * count + each * TALL, from + top, TALL * sizeof *to);
        }
    }
}

/* Rows of a strip, by a part of the sums. The last rows and columns are computed with those before
 * them, which are left alone. */
static void LOCAL(multiply_strip)(const LOCAL(Product) *p, const float *packed, int64_t first, int64_t end,
                                  int64_t strip, int64_t k, int64_t count)
{
    enum { TALL = LOCAL(TALL), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN), DEEP = LOCAL(DEEP) };
    int64_t column = strip * RUN, left = p->columns - column < RUN ? p->columns - column : RUN;
    int vectors = (int)((left + VECTOR - 1) / VECTOR);
    int64_t across = vectors * VECTOR - left;
    float turned[DEEP * RUN], edge[TALL * RUN];
    const float *right = p->right + k * p->line + column - across;
    LOCAL(Tile) tile = {NULL, turned, packed ? 1 : p->row, packed ? TALL : p->step, RUN, count, 0, NULL, 0};
    if (!p->line) {
        for (int64_t j = 0; j < vectors * VECTOR; j += VECTOR)
            LOCAL(turn_rows)(p->right + (column - across + j) * p->inner + k, p->inner, count, turned + j);
    } else if (p->line < LOCAL(FAR_APART)) {
        tile.right = right;
        tile.line = p->line;
    } else {
        for (int64_t each = 0; each < count; each++)
            for (int j = 0; j < vectors * VECTOR; j++) turned[each * RUN + j] = right[each * p->line + j];
    }
    for (int64_t i = first; i < end; i += TALL) {
        int64_t down = i + TALL > p->rows ? i + TALL - p->rows : 0;
        float *out = p->out + i * p->apart + column;
        int is_edge = down || across;
        tile.left = packed ? packed + (i - first) * count : p->left + (i - down) * p->row + k * p->step;
        tile.out = is_edge ? edge : out;
        tile.apart = is_edge ? RUN : p->apart;
        tile.more = (k || p->more) && !is_edge;
        if (vectors == 3) LOCAL(multiply_3)(&tile);
        else if (vectors == 2) LOCAL(multiply_2)(&tile);
        else LOCAL(multiply_1)(&tile);
        for (int64_t each = down; is_edge && each < TALL; each++)
            for (int64_t j = across; j < vectors * VECTOR; j++) {
                float *element = out + (each - down) * p->apart + j - across;
                *element = edge[each * RUN + j] + (k || p->more ? *element : 0);
            }
    }
}

/* Rows of some strips, by parts of the sums, so that what is read of both matrices stays near. */
static void LOCAL(multiply_piece)(void *given, int64_t number)
{
    enum { DEEP = LOCAL(DEEP) };
    const LOCAL(Product) *p = given;
    int64_t group = p->line ? number % p->groups : number / p->chunks;
    int64_t chunk = p->line ? number / p->groups : number % p->chunks;
    int64_t first = chunk * p->many, end = first + p->many < p->rows ? first + p->many : p->rows;
    int64_t strip = group * p->wide, last = strip + p->wide < p->strips ? strip + p->wide : p->strips;
    float packed[DEEP * LOCAL(MANY)];
    int is_packed = p->step >= LOCAL(FAR_APART);
    for (int64_t k = 0; k < p->inner; k += DEEP) {
        int64_t count = p->inner - k < DEEP ? p->inner - k : DEEP;
        if (is_packed) LOCAL(pack_left)(p, first, end, k, count, packed);
        for (int64_t each = strip; each < last; each++)
            LOCAL(multiply_strip)(p, is_packed ? packed : NULL, first, end, each, k, count);
    }
}

/* Part the rows and columns of a product; gives the number of its pieces. */
static int64_t LOCAL(pieces_of)(LOCAL(Product) *p)
{
    enum { PIECES = 16 }; /* at least, where there are so many */
    p->many = p->step == 1 ? 2 * LOCAL(MANY) : LOCAL(MANY);
    p->strips = (p->columns + LOCAL(RUN) - 1) / LOCAL(RUN);
    p->chunks = (p->rows + p->many - 1) / p->many;
    p->groups = p->strips * p->chunks < PIECES ? p->strips : (PIECES + p->chunks - 1) / p->chunks;
    p->wide = (p->strips + p->groups - 1) / p->groups;
    p->groups = (p->strips + p->wide - 1) / p->wide;
    return p->groups * p->chunks;
}

/* matrix_product(left, right, out, rows, inner, columns, turned, threads): the left matrix (rows,
 * inner) times the right one (inner, columns). Where `turned` is 1 the left one lies as its
 * transpose, where it is 2 the right one. */
KERNEL(matrix_product)
{
    enum { RUN = LOCAL(RUN), TALL = LOCAL(TALL) };
    int64_t turned = N(6), rows = N(3), inner = N(4), columns = N(5);
    NEED(turned >= 0 && turned <= 2 && inner > 0 && rows >= TALL && columns >= RUN);
    NEED(rows < 1 << 24 && inner < 1 << 24 && columns < 1 << 24);
    NEED(N(0) == rows * inner && N(1) == inner * columns && N(2) == rows * columns);
    LOCAL(Product) p = {F(0), F(1), F(2), rows, inner, columns, inner, 1, columns, columns, 0, 0, 0, 0, 0, 0};
    if (turned == 1) p.row = 1, p.step = rows;
    if (turned == 2) p.line = 0;
    share(LOCAL(multiply_piece), &p, LOCAL(pieces_of)(&p), N(7));
    return NULL;
}
