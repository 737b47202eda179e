/* Products of matrices, in tiles that are kept in registers. Every element is summed in one order, so
 * threads share out the work without changing a bit. What many tiles read from far apart is laid side
 * by side first: a strip of the right matrix, and the left one where it lies as its transpose; of a
 * large product all strips once, for all rows. */

enum { LOCAL(TALL) = LOCAL(CHANNELS), LOCAL(DEEP) = 256, LOCAL(MANY) = 64 };
enum { LOCAL(DEEPER) = 384 }; /* of a sum, where strips are packed for all rows */
enum { LOCAL(STAYS) = LOCAL(RUN) * LOCAL(DEEPER) <= 1 << 14 }; /* whether a strip stays in the first cache */
enum { LOCAL(FAR_APART) = 512 }; /* elements between two rows, from which on they compete for the cache */
enum { LOCAL(LINE) = 16, LOCAL(BEFORE) = 8 }; /* elements that are fetched at once, so many rows before they are read */

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

static int64_t LOCAL(least)(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* How many parts of a size make a whole. */
static int64_t LOCAL(parts)(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

/* Rows of the left matrix times `vectors` of the right one. The rows are reached from two of them:
 * processors have few registers for addresses. */
INLINE void LOCAL(multiply_tile)(const LOCAL(Tile) *t, const int vectors)
{
    enum { TALL = LOCAL(TALL), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN), HALF = TALL / 2 };
    float total[TALL][RUN];
    LOCAL(clear)(total, vectors);
    const float *run = t->right, *above = t->left, *below = t->left + HALF * t->row;
    int64_t row = t->row, step = t->step, line = t->line;
    for (int64_t k = 0; k < t->count; k++, run += line, above += step, below += step) {
        UNROLLED(3)
        for (int part = 0; part < vectors * VECTOR; part += LOCAL(LINE)) PREFETCH(run + LOCAL(BEFORE) * line + part);
        UNROLLED(8)
        for (int i = 0; i < TALL; i++)
            UNROLLED(3)
            for (int part = 0; part < vectors * VECTOR; part += VECTOR)
                for (int j = part; j < part + VECTOR; j++)
                    total[i][j] = LOCAL(fma)((i < HALF ? above : below)[i % HALF * row], run[j], total[i][j]);
    }
    LOCAL(store)(total, vectors, t->out, t->apart, t->more);
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

/* Some columns of a left matrix, of as many rows as a tile has, tile by tile. */
static void LOCAL(pack_left)(const LOCAL(Product) *p, int64_t first, int64_t end, int64_t k, int64_t count, float *to)
{
    enum { TALL = LOCAL(TALL) };
    for (int64_t each = 0; each < count; each++) {
        const float *from = p->left + (k + each) * p->step;
        for (int64_t i = first; i < end; i += LOCAL(LINE)) PREFETCH(from + LOCAL(BEFORE) * p->step + i);
        for (int64_t i = first; i < end; i += TALL) {
            int64_t top = LOCAL(least)(i, p->rows - TALL);
            memcpy(to + (i - first) * count + each * TALL, from + top, TALL * sizeof *to);
        }
    }
}

/* A strip of the right matrix: its columns, and where they are no whole vectors, some before them. */
typedef struct {
    int64_t column, across; /* the first column, and how many are read before it */
    int vectors;
} LOCAL(Strip);

static LOCAL(Strip) LOCAL(strip_of)(const LOCAL(Product) *p, int64_t number)
{
    enum { VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN) };
    int64_t column = number * RUN, left = LOCAL(least)(p->columns - column, RUN);
    int vectors = (int)LOCAL(parts)(left, VECTOR);
    return (LOCAL(Strip)){column, vectors * VECTOR - left, vectors};
}

/* Some rows of a strip, one behind the other. */
static void LOCAL(pack_right)(const LOCAL(Product) *p, const LOCAL(Strip) *s, int64_t k, int64_t count, float *to)
{
    enum { VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN) };
    int64_t column = s->column - s->across;
    if (!p->line) {
        for (int64_t j = 0; j < s->vectors * VECTOR; j += VECTOR)
            LOCAL(turn_rows)(p->right + (column + j) * p->inner + k, p->inner, count, to + j);
        return;
    }
    const float *from = p->right + k * p->line + column;
    for (int64_t each = 0; each < count; each++, from += p->line, to += RUN) {
        for (int j = 0; j < RUN; j += LOCAL(LINE)) PREFETCH(from + LOCAL(BEFORE) * p->line + j);
        for (int j = 0; j < s->vectors * VECTOR; j++) to[j] = from[j];
    }
}

/* A tile of the result, from row `i` on. The last rows and columns are computed with those before
 * them, which are left alone. */
INLINE void LOCAL(multiply_at)(const LOCAL(Product) *p, LOCAL(Tile) *tile, const LOCAL(Strip) *s, int64_t i, int more)
{
    enum { TALL = LOCAL(TALL), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN) };
    float edge[TALL * RUN], *out = p->out + i * p->apart + s->column;
    int64_t down = i + TALL > p->rows ? i + TALL - p->rows : 0;
    int is_edge = down || s->across;
    tile->out = is_edge ? edge : out;
    tile->apart = is_edge ? RUN : p->apart;
    tile->more = more && !is_edge;
    if (s->vectors == 3) LOCAL(multiply_3)(tile);
    else if (s->vectors == 2) LOCAL(multiply_2)(tile);
    else LOCAL(multiply_1)(tile);
    for (int64_t each = down; is_edge && each < TALL; each++)
        for (int64_t j = s->across; j < s->vectors * VECTOR; j++) {
            float *element = out + (each - down) * p->apart + j - s->across;
            *element = edge[each * RUN + j] + (more ? *element : 0);
        }
}

/* Rows of a strip, by a part of the sums. */
static void LOCAL(multiply_strip)(const LOCAL(Product) *p, const float *packed, int64_t first, int64_t end,
                                  int64_t strip, int64_t k, int64_t count)
{
    enum { TALL = LOCAL(TALL), RUN = LOCAL(RUN), DEEP = LOCAL(DEEP) };
    LOCAL(Strip) s = LOCAL(strip_of)(p, strip);
    float turned[DEEP * RUN];
    LOCAL(Tile) tile = {NULL, turned, packed ? 1 : p->row, packed ? TALL : p->step, RUN, count, 0, NULL, 0};
    if (p->line && p->line < LOCAL(FAR_APART)) {
        tile.right = p->right + k * p->line + s.column - s.across;
        tile.line = p->line;
    } else {
        LOCAL(pack_right)(p, &s, k, count, turned);
    }
    for (int64_t i = first; i < end; i += TALL) {
        int64_t top = LOCAL(least)(i, p->rows - TALL);
        tile.left = packed ? packed + (i - first) * count : p->left + top * p->row + k * p->step;
        LOCAL(multiply_at)(p, &tile, &s, i, k || p->more);
    }
}

/* Rows of some strips, by parts of the sums, so that what is read of both matrices stays near. */
static void LOCAL(multiply_piece)(void *given, int64_t number)
{
    enum { DEEP = LOCAL(DEEP) };
    const LOCAL(Product) *p = given;
    int64_t group = p->line ? number % p->groups : number / p->chunks;
    int64_t chunk = p->line ? number / p->groups : number % p->chunks;
    int64_t first = chunk * p->many, end = LOCAL(least)(first + p->many, p->rows);
    int64_t strip = group * p->wide, last = LOCAL(least)(strip + p->wide, p->strips);
    float packed[DEEP * LOCAL(MANY)];
    int is_packed = p->step >= LOCAL(FAR_APART);
    for (int64_t k = 0; k < p->inner; k += DEEP) {
        int64_t count = LOCAL(least)(DEEP, p->inner - k);
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
    p->strips = LOCAL(parts)(p->columns, LOCAL(RUN));
    p->chunks = LOCAL(parts)(p->rows, p->many);
    p->groups = p->strips * p->chunks < PIECES ? p->strips : LOCAL(parts)(PIECES, p->chunks);
    p->wide = LOCAL(parts)(p->strips, p->groups);
    p->groups = LOCAL(parts)(p->strips, p->wide);
    return p->groups * p->chunks;
}

/* --- products of many rows --------------------------------------------------------------------- */

/* A part of a product, by some columns of the left matrix and as many rows of some strips. The strips
 * are packed once, for all rows, so many of them as stay in the second cache. What stays in the first one
 * are a tile's rows of the left matrix while it goes over the strips, or a strip while tiles go over
 * it, if there is room for one and the rows are packed too. */
typedef struct {
    const LOCAL(Product) *p;
    float *packed;        /* the strips, one after the other */
    int64_t k, count;     /* the first one of the columns and rows, and how many there are */
    int64_t first, end;   /* the strips */
    int64_t many;         /* rows of a piece */
    int64_t wide, groups; /* strips of a piece, and pieces side by side */
} LOCAL(Panel);

static void LOCAL(pack_strip)(void *given, int64_t number)
{
    const LOCAL(Panel) *t = given;
    LOCAL(Strip) s = LOCAL(strip_of)(t->p, t->first + number);
    LOCAL(pack_right)(t->p, &s, t->k, t->count, t->packed + number * t->count * LOCAL(RUN));
}

/* Some rows of the left matrix, at most `MANY`, times some strips. */
static void LOCAL(multiply_block)(const LOCAL(Panel) *t, int64_t row, int64_t bottom, int64_t first, int64_t end)
{
    enum { TALL = LOCAL(TALL), RUN = LOCAL(RUN), MANY = LOCAL(MANY) };
    const LOCAL(Product) *p = t->p;
    float packed[LOCAL(DEEPER) * MANY];
    int is_packed = p->step > 1, by_strips = is_packed && LOCAL(STAYS);
    if (is_packed) LOCAL(pack_left)(p, row, bottom, t->k, t->count, packed);
    LOCAL(Tile) tile = {NULL, NULL, is_packed ? 1 : p->row, is_packed ? TALL : 1, RUN, t->count, 0, NULL, 0};
    int64_t strips = end - first, tiles = LOCAL(parts)(bottom - row, TALL);
    for (int64_t number = 0; number < strips * tiles; number++) {
        int64_t strip = first + (by_strips ? number / tiles : number % strips);
        int64_t i = row + (by_strips ? number % tiles : number / strips) * TALL;
        int64_t top = LOCAL(least)(i, p->rows - TALL);
        LOCAL(Strip) s = LOCAL(strip_of)(p, strip);
        tile.left = is_packed ? packed + (i - row) * t->count : p->left + top * p->row + t->k;
        tile.right = t->packed + (strip - t->first) * t->count * RUN;
        LOCAL(multiply_at)(p, &tile, &s, i, t->k || p->more);
    }
}

static void LOCAL(multiply_packed)(void *given, int64_t number)
{
    const LOCAL(Panel) *t = given;
    int64_t row = number / t->groups * t->many, bottom = LOCAL(least)(row + t->many, t->p->rows);
    int64_t first = t->first + number % t->groups * t->wide, end = LOCAL(least)(first + t->wide, t->end);
    for (; row < bottom; row += LOCAL(MANY))
        LOCAL(multiply_block)(t, row, LOCAL(least)(row + LOCAL(MANY), bottom), first, end);
}

/* The sums are taken in parts of one length, or nearly so. */
static const char *LOCAL(multiply_many)(const LOCAL(Product) *p, int64_t threads)
{
    enum { RUN = LOCAL(RUN), TALL = LOCAL(TALL), DEEPER = LOCAL(DEEPER) };
    enum { NEAR = 1 << 17 };            /* elements that stay in the second cache */
    enum { PIECES = 4, MOST = 128 };    /* a thread's, at least, and rows of one, at most */
    enum { ALIGNED = 64 };
    int64_t strips = LOCAL(parts)(p->columns, RUN), deep = LOCAL(parts)(p->inner, LOCAL(parts)(p->inner, DEEPER));
    int64_t together = LOCAL(least)(strips, LOCAL(parts)(NEAR, deep * RUN)), pieces = PIECES * threads;
    LOCAL(Panel) t = {.p = p};
    char *memory = malloc((size_t)(deep * together * RUN) * sizeof(float) + ALIGNED);
    if (!memory) return NO_MEMORY;
    t.packed = (float *)(memory + ALIGNED - (uintptr_t)memory % ALIGNED);
    t.many = LOCAL(least)(MOST, LOCAL(parts)(LOCAL(parts)(p->rows, pieces), TALL) * TALL);
    int64_t chunks = LOCAL(parts)(p->rows, t.many);
    for (; t.first < strips; t.first = t.end) {
        t.end = LOCAL(least)(t.first + together, strips);
        int64_t count = t.end - t.first;
        t.wide = LOCAL(parts)(count, LOCAL(least)(count, LOCAL(parts)(pieces, chunks)));
        t.groups = LOCAL(parts)(count, t.wide);
        for (t.k = 0; t.k < p->inner; t.k += deep) {
            t.count = LOCAL(least)(deep, p->inner - t.k);
            share(LOCAL(pack_strip), &t, count, threads);
            share(LOCAL(multiply_packed), &t, chunks * t.groups, threads);
        }
    }
    free(memory);
    return NULL;
}

/* matrix_product(left, right, out, rows, inner, columns, turned, threads): the left matrix (rows,
 * inner) times the right one (inner, columns). Where `turned` is 1 the left one lies as its
 * transpose, where it is 2 the right one. */
KERNEL(matrix_product)
{
    enum { RUN = LOCAL(RUN), TALL = LOCAL(TALL) };
    enum { LEAST = 128, LARGE = 1 << 27 }; /* rows and multiplications, from which on packing pays */
    enum { SMALLER = 1 << 24 };            /* where both are packed, and sums are whole: no bit changes */
    int64_t turned = N(6), rows = N(3), inner = N(4), columns = N(5);
    NEED(turned >= 0 && turned <= 2 && inner > 0 && rows >= TALL && columns >= RUN);
    NEED(rows <= INT32_MAX && inner <= INT32_MAX && columns <= INT32_MAX);
    NEED(N(0) == rows * inner && N(1) == inner * columns && N(2) == rows * columns);
    LOCAL(Product) p = {F(0), F(1), F(2), rows, inner, columns, inner, 1, columns, columns, 0, 0, 0, 0, 0, 0};
    if (turned == 1) p.row = 1, p.step = rows;
    if (turned == 2) p.line = 0;
    int both = LOCAL(STAYS) && turned == 1 && inner <= LOCAL(DEEP) && rows > 2 * LEAST;
    if (rows >= LEAST && rows * inner >= (both ? SMALLER : LARGE) / columns)
        return LOCAL(multiply_many)(&p, N(7) > 1 ? N(7) : 1);
    share(LOCAL(multiply_piece), &p, LOCAL(pieces_of)(&p), N(7));
    return NULL;
}
