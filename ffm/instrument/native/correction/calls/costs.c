#include "costs.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "cache.h"
#include "clock.h"

enum { ROUNDS = 3 };

/* More than most last-level caches hold for one core. */
static const size_t bytes = (size_t)32 << 20;

static void note_least(double *least, uint64_t since_ns)
{
    double seconds = (double)(ffm_now() - since_ns) / 1e9 / (double)bytes;
    if (*least == 0 || seconds < *least)
        *least = seconds;
}

static char *make_pages(void)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static bool measure_once(ffm_remedy_costs *costs)
{
    char *from = make_pages(), *to = make_pages();
    bool measured = from != NULL && to != NULL;
    if (measured) {
        memset(from, 1, bytes);
        uint64_t began_ns = ffm_now();
        memcpy(to, from, bytes);
        note_least(&costs->copy, began_ns);
        began_ns = ffm_now();
        ffm_content_key key = ffm_content_of(to, bytes);
        __asm__ volatile("" : : "r"(key.low), "r"(key.high)); /* the hash must be computed */
        note_least(&costs->hash, began_ns);
    }
    if (from != NULL)
        munmap(from, bytes);
    if (to != NULL)
        munmap(to, bytes);
    return measured;
}

bool ffm_remedy_measure(ffm_remedy_costs *costs)
{
    *costs = (ffm_remedy_costs){0};
    for (int round = 0; round < ROUNDS; round++)
        if (!measure_once(costs))
            return false;
    return true;
}
