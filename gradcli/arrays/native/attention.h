/* Attention of many heads, each by blocks of queries: the scores of a block are computed, become
 * weights, and are gone before the next block. Keys that a mask shows to no query of a block are
 * left out of its products: their weights are 0. A thread has whole heads, so the gradients are
 * summed in one order. */

enum { LOCAL(QUERIES) = 64, LOCAL(MOST_QUERIES) = LOCAL(QUERIES) + LOCAL(TALL) }; /* of a block */

typedef struct {
    const float *query, *key, *value, *mask, *grad;
    float *out, *of_query, *of_key, *of_value;
    int64_t length, keys, features;  /* of a head */
    int64_t together;                /* heads whose gradients are adjacent at a position */
    int64_t each, masks, lines;      /* successive heads under one mask; how many, and their rows */
    float scale;
    int64_t blocks, *shown;          /* for each mask: how many keys the queries of a block see */
    int failed;
} LOCAL(Attention);

static int64_t LOCAL(first_query)(const LOCAL(Attention) *t, int64_t block)
{
    return block == t->blocks ? t->length : t->length * block / t->blocks / LOCAL(TALL) * LOCAL(TALL);
}

/* Keys up to the last one that some query of a block sees, so many as the products take at least. */
static int64_t LOCAL(shown_to)(const LOCAL(Attention) *t, const float *mask, int64_t block)
{
    int64_t count = 1, begin = t->lines > 1 ? LOCAL(first_query)(t, block) : 0;
    int64_t end = t->lines > 1 ? LOCAL(first_query)(t, block + 1) : 1;
    for (int64_t row = begin; row < end; row++)
        for (int64_t k = t->keys; k > count; k--)
            if (mask[row * t->keys + k - 1] != -INFINITY) count = k;
    count = (count + LOCAL(VECTOR) - 1) / LOCAL(VECTOR) * LOCAL(VECTOR);
    return count < t->keys ? count : t->keys;
}

static void LOCAL(multiply)(const float *left, int64_t row, int64_t step, const float *right, int64_t line,
                            float *out, int64_t apart, int more, int64_t rows, int64_t inner, int64_t columns)
{
    LOCAL(Product) p = {left, right, out, rows, inner, columns, row, step, line, apart, more, 0, 0, 0, 0, 0};
    int64_t pieces = LOCAL(pieces_of)(&p);
    for (int64_t number = 0; number < pieces; number++) LOCAL(multiply_piece)(&p, number);
}

/* A block of queries of a head. */
typedef struct {
    int64_t first, rows, keys;
    const float *query, *key, *value, *mask;
} LOCAL(Block);

static LOCAL(Block) LOCAL(block_of)(const LOCAL(Attention) *t, int64_t head, int64_t block, int may_hide)
{
    int64_t mask = t->mask ? head / t->each % t->masks : 0, first = LOCAL(first_query)(t, block);
    LOCAL(Block) b = {first, LOCAL(first_query)(t, block + 1) - first, t->keys, NULL, NULL, NULL, NULL};
    if (may_hide) b.keys = t->shown[mask * t->blocks + block];
    if (t->mask) b.mask = t->mask + (mask * t->lines + (t->lines > 1 ? first : 0)) * t->keys;
    b.query = t->query + (head * t->length + first) * t->features;
    b.key = t->key + head * t->keys * t->features;
    b.value = t->value + head * t->keys * t->features;
    return b;
}

/* Whether weights of 0 leave out what is hidden of a head. */
static int LOCAL(may_hide)(const LOCAL(Attention) *t, int64_t head)
{
    int64_t count = t->keys * t->features;
    return t->mask && LOCAL(are_finite)(t->key + head * count, count) && LOCAL(are_finite)(t->value + head * count, count);
}

static void LOCAL(weigh_block)(const LOCAL(Attention) *t, const LOCAL(Block) *b, float *weights)
{
    LOCAL(multiply)(b->query, t->features, 1, b->key, 0, weights, b->keys, 0, b->rows, t->features, b->keys);
    for (int64_t row = 0; row < b->rows; row++) {
        const float *added = b->mask ? b->mask + (t->lines > 1 ? row : 0) * t->keys : NULL;
        float *line = weights + row * b->keys;
        LOCAL(softmax_row)(line, added, t->scale, 1, b->keys, line);
    }
}

static void LOCAL(attend)(void *given, int64_t head)
{
    LOCAL(Attention) *t = given;
    int64_t features = t->features;
    int may_hide = LOCAL(may_hide)(t, head);
    float *weights = malloc((size_t)(LOCAL(MOST_QUERIES) * t->keys) * sizeof *weights);
    if (!weights) {
        t->failed = 1;
        return;
    }
    for (int64_t block = 0; block < t->blocks; block++) {
        LOCAL(Block) b = LOCAL(block_of)(t, head, block, may_hide);
        LOCAL(weigh_block)(t, &b, weights);
        LOCAL(multiply)(weights, b.keys, 1, b.value, features, t->out + (head * t->length + b.first) * features,
                        features, 0, b.rows, b.keys, features);
    }
    free(weights);
}

static void LOCAL(differentiate)(void *given, int64_t head)
{
    LOCAL(Attention) *t = given;
    int64_t features = t->features, apart = t->together * features;
    int64_t sample = head / t->together, place = head % t->together * features;
    float *of_query = t->of_query + sample * t->length * apart + place;
    float *of_key = t->of_key + sample * t->keys * apart + place;
    float *of_value = t->of_value + sample * t->keys * apart + place;
    int may_hide = LOCAL(may_hide)(t, head);
    float *weights = malloc((size_t)(2 * LOCAL(MOST_QUERIES) * t->keys) * sizeof *weights);
    if (!weights) {
        t->failed = 1;
        return;
    }
    for (int64_t k = 0; k < t->keys; k++) {
        memset(of_key + k * apart, 0, (size_t)features * sizeof *of_key);
        memset(of_value + k * apart, 0, (size_t)features * sizeof *of_value);
    }
    for (int64_t block = 0; block < t->blocks; block++) {
        LOCAL(Block) b = LOCAL(block_of)(t, head, block, may_hide);
        const float *grad = t->grad + (head * t->length + b.first) * features;
        float *scores = weights + b.rows * b.keys;
        LOCAL(weigh_block)(t, &b, weights);
        LOCAL(multiply)(weights, 1, b.keys, grad, features, of_value, apart, 1, b.keys, b.rows, features);
        LOCAL(multiply)(grad, features, 1, b.value, 0, scores, b.keys, 0, b.rows, features, b.keys);
        for (int64_t k = 0; k < b.rows * b.keys; k += b.keys)
            LOCAL(softmax_backward_row)(scores + k, weights + k, t->scale, b.keys, scores + k);
        LOCAL(multiply)(scores, b.keys, 1, b.key, features, of_query + b.first * apart, apart, 0, b.rows, b.keys, features);
        LOCAL(multiply)(scores, 1, b.keys, b.query, features, of_key, apart, 1, b.keys, b.rows, features);
    }
    free(weights);
}

/* Whether products have so many columns. */
static int LOCAL(are_columns)(int64_t count)
{
    return count >= LOCAL(RUN) || (count > 0 && count % LOCAL(VECTOR) == 0);
}

/* Read the sizes that begin at argument k, find what the masks show, and do the work for all heads. */
static const char *LOCAL(over_heads)(const Argument *a, int k, LOCAL(Attention) *t, int64_t query, int64_t key,
                                     int64_t value, int64_t mask, void (*work)(void *, int64_t))
{
    int64_t length = N(k), keys = N(k + 1), features = N(k + 2), each = N(k + 3), lines = N(k + 4);
    NEED(length >= LOCAL(TALL) && keys >= LOCAL(TALL) && LOCAL(are_columns)(keys) && LOCAL(are_columns)(features));
    NEED(length < 1 << 24 && keys < 1 << 24 && features < 1 << 24);
    int64_t heads = query / (length * features);
    NEED(query == heads * length * features && key == heads * keys * features && value == key);
    NEED(!t->mask || (each > 0 && (lines == 1 || lines == length) && mask > 0 && mask % (lines * keys) == 0));
    t->length = length, t->keys = keys, t->features = features, t->each = each, t->lines = lines;
    t->masks = t->mask ? mask / (lines * keys) : 0;
    t->scale = (float)X(k + 5);
    t->blocks = (length + LOCAL(QUERIES) - 1) / LOCAL(QUERIES);
    t->shown = t->mask ? malloc((size_t)(t->masks * t->blocks) * sizeof *t->shown) : NULL;
    if (t->mask && !t->shown) return NO_MEMORY;
    for (int64_t j = 0; j < t->masks * t->blocks; j++)
        t->shown[j] = LOCAL(shown_to)(t, t->mask + j / t->blocks * lines * keys, j % t->blocks);
    share(work, t, heads, N(k + 6));
    free(t->shown);
    return t->failed ? NO_MEMORY : NULL;
}

/* attention(query, key, value, mask, out, length, keys, features, each, lines, scale, threads): of
 * heads, (length, features) and (keys, features) each: softmax(query @ keyᵀ * scale + mask) @ value.
 * So many heads, `each`, have the first mask of as many `lines`, 1 for all queries, or one for each;
 * the next ones have the next mask, and behind the last mask comes the first one. */
KERNEL(attention)
{
    LOCAL(Attention) t = {.query = F(0), .key = F(1), .value = F(2), .mask = F(3), .out = F(4)};
    NEED(N(4) == N(0));
    return LOCAL(over_heads)(a, 5, &t, N(0), N(1), N(2), N(3), LOCAL(attend));
}

/* attention_backward(grad, query, key, value, mask, of_query, of_key, of_value, together, length, …,
 * threads): the gradients, in which so many heads are adjacent at every position. */
KERNEL(attention_backward)
{
    LOCAL(Attention) t = {.query = F(1), .key = F(2), .value = F(3), .mask = F(4), .grad = F(0)};
    t.of_query = F(5), t.of_key = F(6), t.of_value = F(7), t.together = N(8);
    NEED(N(0) == N(1) && N(5) == N(1) && N(6) == N(2) && N(7) == N(3));
    NEED(t.together > 0 && N(9) > 0 && N(11) > 0 && N(1) % (t.together * N(9) * N(11)) == 0);
    return LOCAL(over_heads)(a, 9, &t, N(1), N(2), N(3), N(4), LOCAL(differentiate));
}
