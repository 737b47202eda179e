/* All kernels, compiled for one level. */

#include "elementary.h"
#include "random.h"
#include "order.h"
#include "pointwise.h"
#include "half.h"
#include "norms.h"
#include "rows.h"
#include "recurrent.h"
#include "convolution.h"
#include "products.h"
#include "attention.h"
#include "special.h"
#include "elimination.h"

#define IS_WIDE 1
#define REAL double
#define NAMED(name) LOCAL(name##_double)
#define KERNEL_OF(name) KERNEL(name##_wide)
#define FMA __builtin_fma
#include "triangular.h"
#undef IS_WIDE
#undef REAL
#undef NAMED
#undef KERNEL_OF
#undef FMA
#define REAL float
#define NAMED(name) LOCAL(name##_single)
#define KERNEL_OF(name) KERNEL(name)
#define FMA __builtin_fmaf
#include "triangular.h"
