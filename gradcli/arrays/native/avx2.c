/* The kernels for processors with AVX2. */

#include "core.h"

#ifdef HAS_LEVELS
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2,lzcnt"))), \
    apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,bmi2,lzcnt")
#endif
#define LEVEL avx2
#undef HAS_FMA
#define HAS_FMA 1
#define HAS_F16C 1 /* as every processor with AVX2 has */
#include "kernels.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
