/* The kernels for processors with AVX-512. */

#include "core.h"

#ifdef HAS_LEVELS
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,f16c,bmi2,lzcnt"))), \
    apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,f16c,bmi2,lzcnt,prefer-vector-width=512")
#endif
#define LEVEL avx512
#undef HAS_FMA
#define HAS_FMA 1
#define HAS_F16C 1 /* as every processor with AVX2 has */
#include "kernels.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
