#include "protection.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kernel.h"
#include "keys.h"

static void (*marking)(void); /* in place of protecting pages */
static uint64_t changes;
static bool without_key; /* pages that the kernel gives no key */

void ffm_protection_mark_with(void (*mark)(void))
{
    marking = mark;
}

static int protection(const ffm_range *range)
{
    return range->writes_only ? PROT_READ : PROT_NONE;
}

typedef struct {
    int rights;
    uint32_t key;
} page_access;

/* A page that two threads want for themselves can be used by none. */
static void restrict_to(page_access *wanted, const ffm_range *range)
{
    const uint32_t key = range->state == FFM_RANGE_KEYED ? range->key : ffm_keys_closed(range->writes_only);
    if (key == 0)
        wanted->rights &= protection(range);
    else if (wanted->key == 0)
        wanted->key = key;
    else if ((wanted->key = ffm_keys_both(wanted->key, key)) == 0)
        wanted->rights = PROT_NONE;
}

/* The protection that the page at an address needs: the strictest of all ranges wins. `until` is lowered to where that
 * changes. `nearby` are the ranges in between. */
static page_access wanted_at(const ffm_range *ranges, const ffm_nearby *nearby, uint64_t page, uint64_t *until)
{
    page_access wanted = {.rights = PROT_READ | PROT_WRITE};
    for (uint32_t i = 0; i < nearby->count; i++) {
        const ffm_range *range = &ranges[ffm_nearby_place(nearby, i)];
        if (!ffm_range_is_protected(range))
            continue;
        uint64_t first = ffm_range_first_page(range), last = ffm_range_last_page(range);
        if (first <= page && page < last) {
            restrict_to(&wanted, range);
            if (last < *until)
                *until = last;
        } else if (first > page && first < *until) {
            *until = first;
        }
    }
    return wanted;
}

/* The same, up to where that is another protection. */
static page_access wanted_from(const ffm_range *ranges, const ffm_nearby *nearby, uint64_t page, uint64_t *until)
{
    const uint64_t last = *until;
    const page_access wanted = wanted_at(ranges, nearby, page, until);
    while (*until < last) {
        uint64_t further = last;
        const page_access next = wanted_at(ranges, nearby, *until, &further);
        if (next.rights != wanted.rights || next.key != wanted.key)
            break;
        *until = further;
    }
    return wanted;
}

static int64_t protect(uint64_t start, uint64_t bytes, page_access wanted)
{
    const uint64_t arguments[6] = {start, bytes, (uint64_t)wanted.rights, wanted.key};
    return ffm_kernel_call(ffm_keys_used() ? SYS_pkey_mprotect : SYS_mprotect, arguments);
}

int64_t ffm_protection_renew(const ffm_range *ranges, const ffm_nearby *nearby, uint64_t first, uint64_t last)
{
    if (marking != NULL) {
        marking();
        return 0;
    }
    int64_t error = 0;
    changes++;
    for (uint64_t until; first < last; first = until) {
        until = last;
        const page_access wanted = wanted_from(ranges, nearby, first, &until);
        int64_t result = protect(first, until - first, wanted);
        if (result == -EACCES && wanted.key != 0) { /* of a file that the program may only read */
            __atomic_store_n(&without_key, true, __ATOMIC_RELAXED);
            result = protect(first, until - first,
                             (page_access){.rights = ffm_keys_let_read(wanted.key) ? PROT_READ : PROT_NONE});
        }
        if (error == 0)
            error = result;
    }
    return error;
}

bool ffm_protection_is_by_keys(void)
{
    return !__atomic_load_n(&without_key, __ATOMIC_RELAXED);
}

bool ffm_protection_lift(uint64_t start, uint64_t bytes)
{
    changes++;
    return protect(start, bytes, (page_access){.rights = PROT_READ | PROT_WRITE}) == 0;
}

uint64_t ffm_protection_changes(void)
{
    return changes;
}
