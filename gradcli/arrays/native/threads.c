/* Work that threads share: this one and helpers. Each has a share of the numbers, which is the same
 * one whenever there is as much work, so that what it has written is near when it reads it; who is
 * done takes numbers of the others'. A helper that comes late finds none, and nobody waits for it. */

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

#if defined(__x86_64__) || defined(__i386__)
#define BREATHE() __builtin_ia32_pause()
#elif defined(__aarch64__) && defined(__GNUC__)
#define BREATHE() __asm__ volatile("yield")
#else
#define BREATHE() ((void)0)
#endif

enum { MOST_HELPERS = 63, STACK = 1 << 18, LINE = 64 };
enum { PATIENCE = 100000 };  /* nanoseconds that a helper looks for more work before it sleeps */
enum { BREATHS = 32 };       /* between two offers of the core to others */
enum { TOO_LONG = 100000 };  /* nanoseconds of waiting that others' work explains */
enum { TIMES_ALONE = 64, LONGEST_ALONE = 1000000000 }; /* what follows a wait: so often as long, at most */

typedef struct {
    _Alignas(LINE) atomic_int_least64_t next;
    int64_t end;
} Share;

static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER; /* who shares out work has it */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of sleep */
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static int helpers, is_prepared;
static int64_t alone_until;

/* The work. Who has entered it and found it open may read what follows and take numbers; it changes
 * while it is closed and nobody is in it. */
static void (*task)(void *, int64_t);
static void *task_given;
static int sharing; /* threads that have a share */
static Share shares[1 + MOST_HELPERS];
static _Alignas(LINE) atomic_uint announced; /* how much work there has been; odd while it is open */
static _Alignas(LINE) atomic_int inside;     /* the helpers that have entered */
static atomic_int sleeping;

static void take_numbers(int self)
{
    for (int k = 0; k < sharing; k++) {
        Share *share = &shares[(self + k) % sharing];
        if (k && atomic_load_explicit(&share->next, memory_order_relaxed) >= share->end) continue;
        for (int64_t number; (number = atomic_fetch_add(&share->next, 1)) < share->end;) task(task_given, number);
    }
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Let time pass, and now and then another thread run. */
static void breathe(unsigned *breaths)
{
    if (++*breaths % BREATHS) BREATHE();
    else sched_yield();
}

static int is_news(unsigned seen)
{
    unsigned found = atomic_load(&announced);
    return found != seen && found % 2;
}

/* Wait until there is other work than was seen last. */
static void wait_for_more(unsigned seen)
{
    unsigned breaths = 0;
    for (int64_t since = now(); !is_news(seen); breathe(&breaths))
        if (breaths % BREATHS == 0 && now() - since > PATIENCE) break;
    if (is_news(seen)) return;
    pthread_mutex_lock(&guard);
    atomic_fetch_add(&sleeping, 1);
    while (!is_news(seen)) pthread_cond_wait(&woken, &guard);
    atomic_fetch_sub(&sleeping, 1);
    pthread_mutex_unlock(&guard);
}

static void *help(void *number)
{
    int self = (int)(intptr_t)number;
    for (unsigned seen = 0;;) {
        wait_for_more(seen);
        atomic_fetch_add(&inside, 1);
        seen = atomic_load(&announced);
        if (seen % 2 && self < sharing) take_numbers(self);
        atomic_fetch_sub(&inside, 1);
    }
    return NULL;
}

/* No thread survives a fork. */
static void forget(void)
{
    pthread_mutex_init(&owner, NULL);
    pthread_mutex_init(&guard, NULL);
    pthread_cond_init(&woken, NULL);
    helpers = 0;
    atomic_store(&inside, 0);
    atomic_store(&sleeping, 0);
    atomic_store(&announced, 0);
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
    while (helpers < count && !pthread_create(&thread, &attributes, help, (void *)(intptr_t)(helpers + 1)))
        helpers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Wait until no helper is at work. One that has no core takes longer than all that was done since
 * the beginning: where the cores have others' work to do, the next work is done alone. */
static void wait_for_helpers(int64_t began)
{
    unsigned breaths = 0;
    if (!atomic_load(&inside)) return;
    int64_t since = now();
    while (atomic_load(&inside)) breathe(&breaths);
    int64_t end = now(), waited = end - since;
    if (waited < TOO_LONG || waited < since - began) return;
    alone_until = end + (waited < LONGEST_ALONE / TIMES_ALONE ? TIMES_ALONE * waited : LONGEST_ALONE);
}

void share(void (*work)(void *, int64_t), void *given, int64_t count, int64_t threads)
{
    int64_t more = (threads < count ? threads : count) - 1;
    more = more < MOST_HELPERS ? more : MOST_HELPERS;
    int is_owner = more > 0 && !pthread_mutex_trylock(&owner);
    int64_t began = is_owner ? now() : 0;
    int is_alone = !is_owner || began < alone_until;
    if (!is_alone && helpers < more) start(more);
    if (is_alone || helpers < 1) {
        for (int64_t number = 0; number < count; number++) work(given, number);
        if (is_owner) pthread_mutex_unlock(&owner);
        return;
    }
    task = work;
    task_given = given;
    sharing = 1 + (int)(helpers < more ? helpers : more);
    for (int k = 0; k < sharing; k++) {
        atomic_store_explicit(&shares[k].next, count * k / sharing, memory_order_relaxed);
        shares[k].end = count * (k + 1) / sharing;
    }
    atomic_fetch_add(&announced, 1);
    if (atomic_load(&sleeping)) {
        pthread_mutex_lock(&guard);
        pthread_cond_broadcast(&woken);
        pthread_mutex_unlock(&guard);
    }
    take_numbers(0);
    atomic_fetch_add(&announced, 1);
    wait_for_helpers(began);
    pthread_mutex_unlock(&owner);
}

#endif
