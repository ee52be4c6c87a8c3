#include "keys.h"

#include <cpuid.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kernel.h"
#include "threads.h"

enum { KEYS = 8, FIRST = 1 };                    /* of 16, of which key 0 is that of all other pages */
enum { BITS = 2, NOTHING = 3 };                  /* of the register for each key; both set: no access */
enum { STATE = 0xd, PART = 9 };                  /* CPUID: the extended state, and PKRU in it (Intel SDM 1, 13.4.1) */
enum { FEATURES = 7, KEYS_ENABLED = 1 << 4 };    /* CPUID: OSPKE */
enum { SOFTWARE = 464, HEADER = 512 };           /* bytes into a signal frame's state: <asm/sigcontext.h>, _xsave_hdr */
enum { EXTENDED = 0x46505853, CODE_OF_KEY = 4 }; /* FP_XSTATE_MAGIC1; SEGV_PKUERR */

static struct {
    bool used, stopped;
    uint32_t place; /* of PKRU: bytes into a signal frame's state */
    uint32_t ours;  /* one bit for each key */
    uint32_t free;
} keys;

static __thread uint32_t own __attribute__((tls_model("initial-exec"))); /* 0: none */
static __thread bool joined __attribute__((tls_model("initial-exec")));

static uint32_t rights_here(void)
{
    uint32_t rights;
    __asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(rights) : "c"(0) : "edx"); /* RDPKRU */
    return rights;
}

static void set_rights_here(uint32_t rights)
{
    __asm__ volatile(".byte 0x0f, 0x01, 0xef" : : "a"(rights), "c"(0), "d"(0) : "memory"); /* WRPKRU */
}

static uint32_t bits_of(uint32_t key)
{
    return (uint32_t)NOTHING << (BITS * key);
}

static bool can_be_used(void)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) || !(c & KEYS_ENABLED) ||
        !__get_cpuid_count(STATE, PART, &a, &b, &c, &d))
        return false;
    keys.place = b;
    return true;
}

/* The kernel gives the lowest free key. If that is not the first, the program uses keys. */
void ffm_keys_open(void)
{
    if (keys.used || keys.stopped || !can_be_used())
        return;
    for (uint32_t key = FIRST; key < FIRST + KEYS; key++) {
        const int64_t given = ffm_kernel(SYS_pkey_alloc, 0, PKEY_DISABLE_ACCESS, 0, 0);
        if (given != (int64_t)key) {
            if (given > 0)
                ffm_kernel(SYS_pkey_free, (uint64_t)given, 0, 0, 0);
            break;
        }
        keys.ours |= 1U << key;
    }
    keys.free = keys.ours;
    keys.used = keys.ours != 0;
}

bool ffm_keys_used(void)
{
    return keys.used;
}

uint32_t ffm_keys_take(void)
{
    if (!keys.used || __atomic_load_n(&keys.stopped, __ATOMIC_RELAXED) || !joined || ffm_threads_lost())
        return 0;
    if (own == 0 && keys.free != 0) {
        own = (uint32_t)__builtin_ctz(keys.free);
        keys.free &= ~(1U << own);
    }
    ffm_keys_enter();
    return own;
}

void ffm_keys_give_back(void)
{
    if (own == 0)
        return;
    set_rights_here(rights_here() | bits_of(own));
    keys.free |= 1U << own;
    own = 0;
}

bool ffm_keys_are_mine(uint32_t key)
{
    return key == own && own != 0;
}

/* Threads that the driver starts do not join, and keep what they inherit: what they touch relies on no wait. */
void ffm_keys_join(void)
{
    joined = true;
    if (!keys.used)
        return;
    if (own != 0) /* in a forked child, where no page has a key */
        keys.free |= 1U << own;
    own = 0;
    for (uint32_t key = FIRST; key < FIRST + KEYS; key++)
        if (keys.ours & 1U << key)
            set_rights_here(rights_here() | bits_of(key));
}

void ffm_keys_stop(void)
{
    __atomic_store_n(&keys.stopped, true, __ATOMIC_RELAXED);
}

void ffm_keys_enter(void)
{
    if (own != 0)
        set_rights_here(rights_here() & ~bits_of(own));
}

/* Without this part in its state, the register is 0: nothing is forbidden. */
void ffm_keys_leave(ucontext_t *interrupted)
{
    uint8_t *state = (uint8_t *)interrupted->uc_mcontext.fpregs;
    if (own == 0 || state == NULL || *(const uint32_t *)(state + SOFTWARE) != EXTENDED ||
        !(*(const uint64_t *)(state + HEADER) & 1ULL << PART))
        return;
    *(uint32_t *)(state + keys.place) &= ~bits_of(own);
}

bool ffm_keys_lacked(const siginfo_t *info)
{
    return info->si_code == CODE_OF_KEY && ffm_keys_are_mine(info->si_pkey);
}
