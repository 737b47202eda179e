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

/* softmax(x, mask, out, length, scale, safe): of rows times the scale plus the mask, whose elements
 * repeat; a `safe` row of minus infinities gives zeros. `out` may be x. */
KERNEL(softmax)
{
    const float *mask = F(1);
    int64_t length = N(3), safe = N(5);
    float scale = (float)X(4);
    NEED(length > 0 && N(0) % length == 0 && N(2) == N(0));
    NEED(!mask || (N(1) > 0 && N(1) % length == 0));
    for (int64_t row = 0; row < N(0) / length; row++) {
        const float *x = F(0) + row * length, *added = mask ? mask + row * length % N(1) : NULL;
        float *out = F(2) + row * length;
        if (scale != 1 || mask) {
            EACH_APART
            for (int64_t k = 0; k < length; k++) out[k] = x[k] * scale + (mask ? added[k] : 0);
            x = out;
        }
        float largest = LOCAL(largest_of)(x, length);
        int empty = safe && largest == -INFINITY;
        for (int64_t k = 0; empty && k < length; k++) empty = x[k] == -INFINITY;
        if (empty) {
            memset(out, 0, (size_t)length * sizeof *out);
            continue;
        }
        float share = 1 / LOCAL(powers)(x, length, largest, out);
        EACH_APART
        for (int64_t k = 0; k < length; k++) out[k] *= share;
    }
    return NULL;
}

/* softmax_backward(grad, output, out, length, scale) */
KERNEL(softmax_backward)
{
    enum { WIDE = 16 };
    int64_t length = N(3);
    float scale = (float)X(4);
    NEED(length > 0 && N(0) % length == 0 && N(1) == N(0) && N(2) == N(0));
    for (int64_t row = 0; row < N(0) / length; row++) {
        const float *grad = F(0) + row * length, *output = F(1) + row * length;
        float *out = F(2) + row * length, sums[WIDE] = {0}, total = 0;
        int64_t k = 0;
        for (; k + WIDE <= length; k += WIDE)
            for (int lane = 0; lane < WIDE; lane++)
                sums[lane] += grad[k + lane] * output[k + lane];
        for (int lane = 0; k < length; k++, lane++) sums[lane] += grad[k] * output[k];
        for (int lane = 0; lane < WIDE; lane++) total += sums[lane];
        EACH_APART
        for (k = 0; k < length; k++) out[k] = output[k] * (grad[k] - total) * scale;
    }
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
    for (int64_t line = 0; line < N(1) / count; line++) {
        const float *x = F(0) + line / counts * height * width;
        int64_t top = line % counts * down - above;
        for (int64_t left = 0; left < count; left += SOME) {
            int64_t some = count - left < SOME ? count - left : SOME;
            float most[SOME];
            int32_t found[SOME];
            int64_t first = top < 0 ? top + (-top + N(13) - 1) / N(13) * N(13) : top;
            for (int64_t k = 0; k < some; k++) {
                int64_t begin = (left + k) * right - before;
                if (begin < 0) begin += (-begin + N(14) - 1) / N(14) * N(14);
                most[k] = -INFINITY;
                found[k] = (int32_t)(first * width + begin);
            }
            for (int64_t tap = 0; tap < N(7) * N(8); tap++) {
                int64_t row = top + tap / N(8) * N(13), shift = tap % N(8) * N(14) - before;
                if (row < 0 || row >= height) continue;
                int64_t low = 0, high = some; /* the windows of which this tap lies inside */
                while (low < high && (left + low) * right + shift < 0) low++;
                while (low < high && (left + high - 1) * right + shift >= width) high--;
                const float *from = x + row * width + shift + left * right;
                int32_t place = (int32_t)(row * width + shift + left * right);
                EACH_APART
                for (int64_t k = low; k < high; k++) {
                    float value = from[k * right];
                    int more = value > most[k] || value != value;
                    most[k] = more ? value : most[k];
                    found[k] = more ? place + (int32_t)(k * right) : found[k];
                }
            }
            memcpy(F(1) + line * count + left, most, (size_t)some * sizeof *most);
            for (int64_t k = 0; k < some; k++) I(2)[line * count + left + k] = found[k];
        }
    }
    return NULL;
}

/* add_at(values, indices, out, size, count, width): pieces of `width` elements are added, one after
 * the other, to those at their indices in `out`: of each plane of `size` pieces, `count` of them. A
 * negative index counts from the end. */
KERNEL(add_at)
{
    int64_t size = N(3), count = N(4), width = N(5);
    NEED(size > 0 && count > 0 && width > 0 && N(1) % count == 0 && size <= N(2) / width);
    NEED(N(0) % width == 0 && N(0) / width == N(1) && N(2) == N(1) / count * size * width);
    for (int64_t k = 0; k < N(1); k++) {
        int64_t at = I(1)[k] + (I(1)[k] < 0 ? size : 0);
        NEED(at >= 0 && at < size);
        float *to = F(2) + (k / count * size + at) * width;
        const float *from = F(0) + k * width;
        EACH_APART
        for (int64_t j = 0; j < width; j++) to[j] += from[j];
    }
    return NULL;
}
