/* Work that threads share: this one and helpers, which take the next number that is left. A helper
 * that comes late finds none, and nobody waits for it. */

#define _POSIX_C_SOURCE 200809L /* strict C11 has no clocks and signals */

#include "core.h"

#if defined(_WIN32) || defined(__EMSCRIPTEN__) || defined(__STDC_NO_ATOMICS__)

void share(void (*work)(void *, int64_t), void *given, int64_t count, int64_t threads)
{
    (void)threads;
    for (int64_t number = 0; number < count; number++) work(given, number);
}

#else

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST_HELPERS = 63, STACK = 1 << 18 };
enum { PATIENCE = 100000 }; /* nanoseconds that a helper looks for more work before it sleeps */

static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER; /* who shares out work has it */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of what follows, but the atomics */
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static int helpers, sleeping, wanted, is_prepared;
static void (*task)(void *, int64_t);
static void *task_given;
static int64_t task_count;
static atomic_int_least64_t next_number;
static atomic_int active;     /* the helpers at work */
static atomic_uint announced; /* how much work there has been */

static void take_numbers(void (*work)(void *, int64_t), void *given, int64_t count)
{
    for (int64_t number; (number = atomic_fetch_add(&next_number, 1)) < count;) work(given, number);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Wait until there is other work than was seen last; returns with the guard. */
static void wait_for_more(unsigned seen)
{
    int64_t since = now();
    while (atomic_load(&announced) == seen && now() - since < PATIENCE) sched_yield();
    pthread_mutex_lock(&guard);
    sleeping++;
    while (atomic_load(&announced) == seen) pthread_cond_wait(&woken, &guard);
    sleeping--;
}

static void *help(void *unused)
{
    unsigned seen = 0;
    for (;;) {
        wait_for_more(seen);
        seen = atomic_load(&announced);
        void (*work)(void *, int64_t) = wanted > 0 ? task : NULL;
        void *given = task_given;
        int64_t count = task_count;
        if (work) {
            wanted--;
            atomic_fetch_add(&active, 1);
        }
        pthread_mutex_unlock(&guard);
        if (work) {
            take_numbers(work, given, count);
            atomic_fetch_sub(&active, 1);
        }
    }
    return unused;
}

/* No thread survives a fork. */
static void forget(void)
{
    pthread_mutex_init(&owner, NULL);
    pthread_mutex_init(&guard, NULL);
    pthread_cond_init(&woken, NULL);
    helpers = sleeping = wanted = 0;
    atomic_store(&active, 0);
}

/* Start helpers until there are so many, or the host has no more. They hear no signals. */
static void start(int64_t count)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (!is_prepared) is_prepared = pthread_atfork(NULL, NULL, forget) == 0;
    if (!is_prepared || pthread_attr_init(&attributes)) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    while (helpers < count && !pthread_create(&thread, &attributes, help, NULL)) helpers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

void share(void (*work)(void *, int64_t), void *given, int64_t count, int64_t threads)
{
    int64_t more = (threads < count ? threads : count) - 1;
    more = more < MOST_HELPERS ? more : MOST_HELPERS;
    if (more < 1 || pthread_mutex_trylock(&owner)) {
        for (int64_t number = 0; number < count; number++) work(given, number);
        return;
    }
    if (helpers < more) start(more);
    pthread_mutex_lock(&guard);
    task = work;
    task_given = given;
    task_count = count;
    wanted = (int)more;
    atomic_store(&next_number, 0);
    atomic_fetch_add(&announced, 1);
    if (sleeping) pthread_cond_broadcast(&woken);
    pthread_mutex_unlock(&guard);
    take_numbers(work, given, count);
    pthread_mutex_lock(&guard);
    wanted = 0; /* who comes now comes late */
    pthread_mutex_unlock(&guard);
    while (atomic_load(&active)) sched_yield();
    pthread_mutex_unlock(&owner);
}

#endif
