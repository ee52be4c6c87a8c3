#include "looks.h"

enum { TRIALS = 16, SITES = 1 << 16 };

/* What the looks of a call site have found. */
typedef union {
    struct {
        uint8_t in_vain;    /* how many of them in a row found other bytes, up to TRIALS */
        uint8_t alike;      /* how many in a row found the same, up to TRIALS */
        bool looked, equal; /* whether there was one, and what the last one found */
        uint32_t passed;    /* transfers that would have been looked at since that is settled */
    };
    uint64_t word;
} looks;

static uint64_t of_site[SITES];

static looks known_of(uint32_t site)
{
    return (looks){.word = __atomic_load_n(&of_site[site % SITES], __ATOMIC_RELAXED)};
}

/* What another thread notes at the same time may be lost: then there is one look more. */
static void note(uint32_t site, looks known)
{
    __atomic_store_n(&of_site[site % SITES], known.word, __ATOMIC_RELAXED);
}

bool ffm_look_pays(uint32_t site, bool again)
{
    looks known = known_of(site);
    if (!again && known.in_vain == TRIALS)
        return false;
    if (known.alike < TRIALS)
        return true;
    known.passed++;
    note(site, known);
    return (known.passed & (known.passed - 1)) == 0;
}

void ffm_look_found(uint32_t site, bool equal)
{
    looks known = known_of(site);
    if (!known.looked || known.equal != equal) {
        known.alike = 0;
        known.passed = 0;
    }
    known.alike += known.alike < TRIALS;
    known.in_vain = equal ? 0 : (uint8_t)(known.in_vain + (known.in_vain < TRIALS));
    known.looked = true;
    known.equal = equal;
    note(site, known);
}

bool ffm_looked(uint32_t site)
{
    return known_of(site).looked;
}

bool ffm_look_found_others(uint32_t site)
{
    return known_of(site).in_vain > 0;
}
