/* Softmax over rows, and max pooling. */

/* The largest of a row, nan apart. */
static float LOCAL(largest_of)(const float *x, int64_t length)
{
    enum { WIDE = 16 };
    float most[WIDE], largest = -INFINITY;
    int64_t k = 0;
    for (int lane = 0; lane < WIDE; lane++) most[lane] = -INFINITY;
    for (; k + WIDE <= length; k += WIDE)
        for (int lane = 0; lane < WIDE; lane++)
            most[lane] = x[k + lane] > most[lane] ? x[k + lane] : most[lane];
    for (; k < length; k++) largest = x[k] > largest ? x[k] : largest;
    for (int lane = 0; lane < WIDE; lane++) largest = most[lane] > largest ? most[lane] : largest;
    return largest;
}

/* The exponentials of a row less its largest element, and their sum. */
static float LOCAL(powers)(const float *x, int64_t length, float largest, float *out)
{
    enum { WIDE = 16 };
    float sums[WIDE] = {0}, total = 0;
    int64_t k = 0;
    EACH_APART
    for (k = 0; k < length; k++) out[k] = LOCAL(exp_of)(x[k] - largest);
    for (k = 0; k + WIDE <= length; k += WIDE)
        for (int lane = 0; lane < WIDE; lane++) sums[lane] += out[k + lane];
    for (int lane = 0; k < length; k++, lane++) sums[lane] += out[k];
    for (int lane = 0; lane < WIDE; lane++) total += sums[lane];
    return total;
}

/* Softmax of a row times the scale plus what is `added`, if anything is. */
INLINE void LOCAL(softmax_row)(const float *x, const float *added, float scale, int safe,
                               int64_t length, float *out)
{
    if (scale != 1 || added) {
        EACH_APART
        for (int64_t k = 0; k < length; k++) out[k] = x[k] * scale + (added ? added[k] : 0);
        x = out;
    }
    float largest = LOCAL(largest_of)(x, length);
    int empty = safe && largest == -INFINITY;
    for (int64_t k = 0; empty && k < length; k++) empty = x[k] == -INFINITY;
    if (empty) {
        memset(out, 0, (size_t)length * sizeof *out);
        return;
    }
    float share = 1 / LOCAL(powers)(x, length, largest, out);
    EACH_APART
    for (int64_t k = 0; k < length; k++) out[k] *= share;
}

/* softmax(x, mask, out, length, scale, safe): of rows times the scale plus the mask, whose elements
 * repeat; a `safe` row of minus infinities gives zeros. `out` may be x. */
KERNEL(softmax)
{
    const float *mask = F(1);
    int64_t length = N(3);
    NEED(length > 0 && N(0) % length == 0 && N(2) == N(0));
    NEED(!mask || (N(1) > 0 && N(1) % length == 0));
    for (int64_t k = 0; k < N(0); k += length)
        LOCAL(softmax_row)(F(0) + k, mask ? mask + k % N(1) : NULL, (float)X(4), N(5) != 0, length, F(2) + k);
    return NULL;
}

/* The gradient of a row, times a scale; `out` may be one of the others. */
INLINE void LOCAL(softmax_backward_row)(const float *grad, const float *output, float scale,
                                        int64_t length, float *out)
{
    enum { WIDE = 16 };
    float sums[WIDE] = {0}, total = 0;
    int64_t k = 0;
    for (; k + WIDE <= length; k += WIDE)
        for (int lane = 0; lane < WIDE; lane++)
            sums[lane] += grad[k + lane] * output[k + lane];
    for (int lane = 0; k < length; k++, lane++) sums[lane] += grad[k] * output[k];
    for (int lane = 0; lane < WIDE; lane++) total += sums[lane];
    EACH_APART
    for (k = 0; k < length; k++) out[k] = output[k] * (grad[k] - total) * scale;
}

/* softmax_backward(grad, output, out, length, scale) */
KERNEL(softmax_backward)
{
    int64_t length = N(3);
    NEED(length > 0 && N(0) % length == 0 && N(1) == N(0) && N(2) == N(0));
    for (int64_t k = 0; k < N(0); k += length)
        LOCAL(softmax_backward_row)(F(0) + k, F(1) + k, (float)X(4), length, F(2) + k);
    return NULL;
}

/* max_pool(x, out, indices, height, width, counts, count, rows, columns, step down, step right,
 * above, before, apart down, apart right): the largest of each window of each plane, of equal ones
 * the first, of nans the last, and its position in the plane. */
KERNEL(max_pool)
{
    enum { SOME = 64 };
    int64_t height = N(3), width = N(4), counts = N(5), count = N(6);
    for (int k = 3; k < 15; k++) NEED(N(k) >= (k == 11 || k == 12 ? 0 : 1) && N(k) < 1 << 15);
    int64_t down = N(9), right = N(10), above = N(11), before = N(12);
    NEED(N(0) % (height * width) == 0 && N(1) == N(0) / (height * width) * counts * count);
    NEED(N(2) == N(1));
    int64_t line = 0, column = 0;
    /* A line of a small picture has few windows: those of several are compared at once. */
    for (int64_t first = 0; first < N(1); first += SOME) {
        int64_t some = N(1) - first < SOME ? N(1) - first : SOME, parts = 0;
        struct { int64_t begin, end, column, top; const float *plane; } part[SOME];
        uint32_t starts[SOME]; /* one outside the picture may wrap: it is not kept */
        int32_t found[SOME];
        float most[SOME], values[SOME];
        for (int64_t at = 0; at < some; parts++) {
            int64_t end = at + count - column < some ? at + count - column : some;
            int64_t top = line % counts * down - above;
            int64_t row = top < 0 ? top + (-top + N(13) - 1) / N(13) * N(13) : top;
            part[parts].begin = at, part[parts].end = end, part[parts].column = column;
            part[parts].top = top, part[parts].plane = F(0) + line / counts * height * width;
            for (; at < end; at++, column++) {
                int64_t left = column * right - before;
                int64_t begin = left < 0 ? left + (-left + N(14) - 1) / N(14) * N(14) : left;
                starts[at] = (uint32_t)(top * width + left);
                found[at] = (int32_t)(row * width + begin), most[at] = -INFINITY;
            }
            if (column == count) column = 0, line++;
        }
        for (int64_t tap = 0; tap < N(7) * N(8); tap++) {
            int64_t low = tap / N(8) * N(13), aside = tap % N(8) * N(14) - before;
            uint32_t shift = (uint32_t)(low * width + aside + before);
            for (int64_t each = 0; each < parts; each++) {
                int64_t begin = part[each].begin, end = part[each].end, row = part[each].top + low;
                int64_t left = part[each].column * right + aside;
                int64_t last = left + (end - begin - 1) * right;
                if (row < 0 || row >= height) end = begin;
                for (; begin < end && left < 0; left += right) values[begin++] = -INFINITY;
                for (; begin < end && last >= width; last -= right) end--;
                const float *from = part[each].plane + row * width + left;
                EACH_APART
                for (int64_t k = 0; k < end - begin; k++) values[begin + k] = from[k * right];
                for (; end < part[each].end; end++) values[end] = -INFINITY;
            }
            EACH_APART
            for (int64_t k = 0; k < some; k++) {
                int more = values[k] > most[k] || values[k] != values[k];
                most[k] = more ? values[k] : most[k];
                found[k] = more ? (int32_t)(starts[k] + shift) : found[k];
            }
        }
        memcpy(F(1) + first, most, (size_t)some * sizeof *most);
        for (int64_t k = 0; k < some; k++) I(2)[first + k] = found[k];
    }
    return NULL;
}

/* What planes have in common, which threads share; whether an index of any is out of range. */
typedef struct {
    const Argument *a;
    int failed;
} LOCAL(Planes);

static void LOCAL(add_at_plane)(void *given, int64_t plane)
{
    LOCAL(Planes) *planes = given;
    const Argument *a = planes->a;
    int64_t size = N(3), count = N(4), width = N(5);
    for (int64_t k = plane * count; k < (plane + 1) * count; k++) {
        int64_t at = I(1)[k] + (I(1)[k] < 0 ? size : 0);
        if (at < 0 || at >= size) {
            planes->failed = 1;
            return;
        }
        float *to = F(2) + (plane * size + at) * width;
        const float *from = F(0) + k * width;
        EACH_APART
        for (int64_t j = 0; j < width; j++) to[j] += from[j];
    }
}

static void LOCAL(put_at_plane)(void *given, int64_t plane)
{
    LOCAL(Planes) *planes = given;
    const Argument *a = planes->a;
    int64_t size = N(3), count = N(4);
    const int64_t *indices = I(1) + plane * count;
    const float *from = F(0) + plane * count;
    float *to = F(2) + plane * size;
    for (int64_t k = 0; k < count; k++) {
        if (indices[k] < 0 || indices[k] >= size) {
            planes->failed = 1;
            return;
        }
        to[indices[k]] = from[k];
    }
}

/* put_at(values, indices, out, size, count, threads): elements are written, one after the other, to
 * their indices in `out`: of each plane of `size` elements, `count` of them. */
KERNEL(put_at)
{
    int64_t size = N(3), count = N(4);
    NEED(size > 0 && count > 0 && N(1) % count == 0 && N(0) == N(1) && N(2) == N(1) / count * size);
    LOCAL(Planes) planes = {a, 0};
    share(LOCAL(put_at_plane), &planes, N(1) / count, N(5));
    NEED(!planes.failed);
    return NULL;
}

/* add_at(values, indices, out, size, count, width, threads): pieces of `width` elements are added, one
 * after the other, to those at their indices in `out`: of each plane of `size` pieces, `count` of
 * them. A negative index counts from the end. */
KERNEL(add_at)
{
    int64_t size = N(3), count = N(4), width = N(5);
    NEED(size > 0 && count > 0 && width > 0 && N(1) % count == 0 && size <= N(2) / width);
    NEED(N(0) % width == 0 && N(0) / width == N(1) && N(2) == N(1) / count * size * width);
    LOCAL(Planes) planes = {a, 0};
    share(LOCAL(add_at_plane), &planes, N(1) / count, N(6));
    NEED(!planes.failed);
    return NULL;
}
