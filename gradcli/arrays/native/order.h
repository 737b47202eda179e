/* Running sums, and the order in which PyTorch sorts and selects: gradcli/arrays/kernels/selection.py says
 * whose steps these are, and takes the same ones. */

/* running_sum(x, out, length, inner, start, stop, reverse): sums along the middle dimension of
 * (rows, length, inner), kept in float64, of the columns from start to stop; from the end where
 * `reverse`. */
KERNEL(running_sum)
{
    enum { COLUMNS = 64, LINES = 8 };
    const float *x = F(0);
    float *out = F(1);
    int64_t length = N(2), inner = N(3), start = N(4), stop = N(5);
    NEED(length > 0 && inner > 0 && N(0) == N(1) && N(0) / inner % length == 0);
    NEED(0 <= start && start <= stop && stop <= inner && N(0) % inner == 0);
    if (!N(0)) return NULL;
    int64_t step = N(6) ? -inner : inner, first = N(6) ? (length - 1) * inner : 0;
    int64_t rows = N(0) / inner / length, row = 0;
    for (; inner == 1 && row + LINES <= rows; row += LINES) { /* side by side: none waits */
        double total[LINES] = {0};
        for (int64_t k = 0; k < length; k++)
            UNROLLED(8)
            for (int line = 0; line < LINES; line++) {
                int64_t at = (row + line) * length + first + k * step;
                total[line] += x[at];
                out[at] = (float)total[line];
            }
    }
    for (; row < rows; row++)
        for (int64_t left = start; left < stop; left += COLUMNS) {
            int64_t width = stop - left < COLUMNS ? stop - left : COLUMNS;
            double total[COLUMNS] = {0};
            for (int64_t k = 0; k < length; k++) {
                int64_t at = row * length * inner + first + k * step + left;
                EACH_APART
                for (int64_t j = 0; j < width; j++) {
                    total[j] += x[at + j];
                    out[at + j] = (float)total[j];
                }
            }
        }
    return NULL;
}

/* --- items: a key that rises with the order, above the position --------------------------------- */

#define KEY(item) ((uint32_t)((item) >> 32))
#define BEFORE(one, other) (KEY(one) < KEY(other))

static void LOCAL(make_items)(const float *x, int64_t count, int falling, uint64_t *items)
{
    uint32_t turned = falling ? 0xffffffffu : 0u;
    EACH_APART
    for (int64_t k = 0; k < count; k++) {
        uint32_t bits = LOCAL(bits)(x[k] + 0.0f); /* no -0 */
        uint32_t key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        key = x[k] != x[k] ? 0xffffffffu : key; /* nan is larger than everything */
        items[k] = (uint64_t)(key ^ turned) << 32 | (uint64_t)k;
    }
}

static void LOCAL(insert)(uint64_t *items, int64_t first, int64_t last)
{
    for (int64_t k = first + 1; k < last; k++) {
        uint64_t value = items[k];
        int64_t at = k;
        while (at > first && BEFORE(value, items[at - 1])) {
            items[at] = items[at - 1];
            at--;
        }
        items[at] = value;
    }
}

static void LOCAL(sift)(uint64_t *heap, int64_t hole, int64_t length, uint64_t value)
{
    int64_t top = hole, child = hole;
    while (child < (length - 1) / 2) {
        child = 2 * (child + 1);
        if (BEFORE(heap[child], heap[child - 1])) child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (length % 2 == 0 && child == (length - 2) / 2) {
        child = 2 * (child + 1);
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    int64_t parent = (hole - 1) / 2;
    while (hole > top && BEFORE(heap[parent], value)) {
        heap[hole] = heap[parent];
        hole = parent;
        parent = (hole - 1) / 2;
    }
    heap[hole] = value;
}

static void LOCAL(heap_select)(uint64_t *items, int64_t first, int64_t middle, int64_t last)
{
    int64_t length = middle - first;
    for (int64_t parent = length / 2 - 1; parent >= 0; parent--)
        LOCAL(sift)(items + first, parent, length, items[first + parent]);
    for (int64_t k = middle; k < last; k++)
        if (BEFORE(items[k], items[first])) {
            uint64_t value = items[k];
            items[k] = items[first];
            LOCAL(sift)(items + first, 0, length, value);
        }
}

static void LOCAL(sort_heap)(uint64_t *items, int64_t first, int64_t last)
{
    while (last - first > 1) {
        uint64_t value = items[--last];
        items[last] = items[first];
        LOCAL(sift)(items + first, 0, last - first, value);
    }
}

#define SWAP(one, other)                                                                          \
    do {                                                                                          \
        uint64_t swapped = one;                                                                   \
        one = other;                                                                              \
        other = swapped;                                                                          \
    } while (0)

static int64_t LOCAL(partition)(uint64_t *items, int64_t first, int64_t last)
{
    int64_t a = first + 1, b = first + (last - first) / 2, c = last - 1, median;
    if (BEFORE(items[a], items[b]))
        median = BEFORE(items[b], items[c]) ? b : BEFORE(items[a], items[c]) ? c : a;
    else
        median = BEFORE(items[a], items[c]) ? a : BEFORE(items[b], items[c]) ? c : b;
    SWAP(items[first], items[median]);
    uint64_t pivot = items[first];
    int64_t low = first + 1, high = last;
    for (;;) {
        while (BEFORE(items[low], pivot)) low++;
        high--;
        while (BEFORE(pivot, items[high])) high--;
        if (low >= high) return low;
        SWAP(items[low], items[high]);
        low++;
    }
}

static int64_t LOCAL(depth_of)(int64_t count)
{
    int64_t depth = -2;
    for (; count; count >>= 1) depth += 2;
    return depth;
}

static void LOCAL(sort_items)(uint64_t *items, int64_t first, int64_t last, int64_t depth)
{
    while (last - first > 16) {
        if (depth-- == 0) {
            LOCAL(heap_select)(items, first, last, last);
            LOCAL(sort_heap)(items, first, last);
            return;
        }
        int64_t cut = LOCAL(partition)(items, first, last);
        LOCAL(sort_items)(items, cut, last, depth);
        last = cut;
    }
}

static void LOCAL(nth_element)(uint64_t *items, int64_t nth, int64_t last)
{
    int64_t first = 0, depth = LOCAL(depth_of)(last);
    while (last - first > 3) {
        if (depth-- == 0) {
            LOCAL(heap_select)(items, first, nth + 1, last);
            SWAP(items[first], items[nth]);
            return;
        }
        int64_t cut = LOCAL(partition)(items, first, last);
        if (cut <= nth) first = cut;
        else last = cut;
    }
    LOCAL(insert)(items, first, last);
}

/* Sort by key, equal ones by position: by digits of 11 bits, the lowest first. */
static void LOCAL(sort_stably)(uint64_t *items, uint64_t *other, int64_t count, uint32_t *counts)
{
    enum { DIGITS = 2048 };
    if (count <= 48) {
        LOCAL(insert)(items, 0, count);
        return;
    }
    memset(counts, 0, 3 * DIGITS * sizeof *counts);
    for (int64_t k = 0; k < count; k++) {
        uint32_t key = KEY(items[k]);
        counts[key & 2047]++;
        counts[DIGITS + (key >> 11 & 2047)]++;
        counts[2 * DIGITS + (key >> 22)]++;
    }
    for (int pass = 0; pass < 3; pass++) {
        uint32_t *digits = counts + pass * DIGITS, before = 0;
        int shift = 32 + 11 * pass;
        for (int k = 0; k < DIGITS; k++) {
            uint32_t some = digits[k];
            digits[k] = before;
            before += some;
        }
        for (int64_t k = 0; k < count; k++) other[digits[items[k] >> shift & 2047]++] = items[k];
        uint64_t *swapped = items;
        items = other;
        other = swapped;
    }
    memcpy(other, items, (size_t)count * sizeof *items); /* back to where they came from */
}

static int LOCAL(has_ties)(const uint64_t *items, int64_t count)
{
    int found = 0;
    for (int64_t k = 1; k < count; k++) found |= KEY(items[k]) == KEY(items[k - 1]);
    return found;
}

static void LOCAL(write_items)(const float *x, const uint64_t *items, int64_t count, float *values,
                               int64_t *indices)
{
    for (int64_t k = 0; k < count; k++) {
        indices[k] = (int64_t)(items[k] & 0xffffffffu);
        values[k] = x[indices[k]];
    }
}

#define POSITIONS 0x7fffffff

/* sorted_rows(x, values, indices, length, falling, stable): the rows in order; equal elements keep
 * their order or have that of PyTorch's unstable sort. */
KERNEL(sorted_rows)
{
    int64_t length = N(3);
    int falling = N(4) != 0, stable = N(5) != 0;
    NEED(0 < length && length < POSITIONS && N(0) == N(1) && N(0) == N(2) && N(0) % length == 0);
    uint64_t *items = malloc((2 * (size_t)length + 3 * 1024) * sizeof *items);
    if (!items) return NO_MEMORY;
    uint64_t *other = items + length;
    uint32_t *counts = (uint32_t *)(other + length);
    for (int64_t row = 0; row < N(0) / length; row++) {
        const float *x = F(0) + row * length;
        LOCAL(make_items)(x, length, falling, items);
        LOCAL(sort_stably)(items, other, length, counts);
        if (!stable && length > 16 && LOCAL(has_ties)(items, length)) {
            LOCAL(make_items)(x, length, falling, items);
            LOCAL(sort_items)(items, 0, length, LOCAL(depth_of)(length));
            LOCAL(insert)(items, 0, length);
        }
        LOCAL(write_items)(x, items, length, F(1) + row * length, I(2) + row * length);
    }
    free(items);
    return NULL;
}

/* selected_rows(x, values, indices, length, falling, count): the first elements of the rows in
 * order, as topk leaves them. */
KERNEL(selected_rows)
{
    int64_t length = N(3), count = N(5);
    int falling = N(4) != 0;
    NEED(0 < length && length < POSITIONS && 0 < count && count <= length);
    NEED(N(0) % length == 0 && N(1) == N(0) / length * count && N(2) == N(1));
    uint64_t *items = malloc((size_t)length * sizeof *items);
    if (!items) return NO_MEMORY;
    for (int64_t row = 0; row < N(0) / length; row++) {
        const float *x = F(0) + row * length;
        LOCAL(make_items)(x, length, falling, items);
        if (count * 64 <= length) {
            LOCAL(heap_select)(items, 0, count, length);
            LOCAL(sort_heap)(items, 0, count);
        } else {
            LOCAL(nth_element)(items, count - 1, length);
            LOCAL(sort_items)(items, 0, count - 1, LOCAL(depth_of)(count - 1));
            LOCAL(insert)(items, 0, count - 1);
        }
        LOCAL(write_items)(x, items, count, F(1) + row * count, I(2) + row * count);
    }
    free(items);
    return NULL;
}
