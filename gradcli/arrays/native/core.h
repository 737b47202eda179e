/* What kernels and module share. Every level of processors has a file that compiles all kernels for
 * it, as NAME_LEVEL. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define HIDDEN __attribute__((visibility("hidden")))
/* The functions that loops call, without which no loop is vectorised, and loops of a fixed number of
 * iterations whose sums are to stay in registers, are named: where the compiler has to find them
 * itself (-O3), it takes twice as long. */
#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))
#define UNROLLED(count) PRAGMA(GCC unroll count)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define HIDDEN
#define INLINE static inline
#define APART static
#define UNROLLED(count)
#define PREFETCH(address) ((void)0)
#endif
#define PRAGMA(text) _Pragma(#text)

#if defined(__GNUC__) && defined(__x86_64__) && !defined(GRADCLI_ONE_LEVEL)
#define HAS_LEVELS 1
#endif

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HAS_FMA 1
#endif

/* Before a loop whose iterations do not read what others write. */
#ifdef __clang__
#define EACH_APART _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define EACH_APART _Pragma("GCC ivdep")
#else
#define EACH_APART
#endif

typedef struct {
    void *data;     /* an array's elements, NULL for None */
    int64_t size;   /* how many, or the integer */
    double number;
} Argument;

/* What is wrong with the arguments, NULL for nothing. */
typedef const char *(*Kernel)(const Argument *a);

/* Call a function with the numbers below a count, on so many threads at most (threads.c). */
extern HIDDEN void share(void (*work)(void *given, int64_t number), void *given, int64_t count,
                         int64_t threads);

/* What a kernel says that finds no memory. */
extern HIDDEN const char NO_MEMORY[];

#define NEED(condition) if (!(condition)) return "sizes do not fit: " #condition
#define F(k) ((float *)a[k].data)
#define D(k) ((double *)a[k].data)
#define I(k) ((int64_t *)a[k].data)
#define U(k) ((uint32_t *)a[k].data)
#define H(k) ((uint16_t *)a[k].data)
#define B(k) ((uint8_t *)a[k].data)
#define N(k) (a[k].size)
#define X(k) (a[k].number)

#define PASTE_(one, other) one##_##other
#define PASTE(one, other) PASTE_(one, other)
#define KERNEL(name) HIDDEN const char *PASTE(name, LEVEL)(const Argument *a)
#define LOCAL(name) PASTE(name, LEVEL)
