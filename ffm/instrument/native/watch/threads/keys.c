#include "keys.h"

#include <cpuid.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kernel.h"
#include "threads.h"

/* A thread's keys are FIRST + n, for pages of its own, and SHARED + n, for pages that others may read; the last such
 * pair is no thread's. What a key is for never changes, since no thread can change the rights of another. Of 16 keys, 0
 * is that of all other pages, and one is left to the program or to memory that can only be executed. */
enum { FIRST = 1, PAIRS = 7, SHARED = FIRST + PAIRS, END = SHARED + PAIRS, CLOSED = SHARED - 1 };
enum { BITS = 2, NO_ACCESS = 1, NO_WRITING = 2, NOTHING = NO_ACCESS | NO_WRITING }; /* of PKRU for each key */
enum { STATE = 0xd, PART = 9 };                  /* CPUID: the extended state, and PKRU in it (Intel SDM 1, 13.4.1) */
enum { FEATURES = 7, KEYS_ENABLED = 1 << 4 };    /* CPUID: OSPKE */
enum { SOFTWARE = 464, HEADER = 512 };           /* bytes into a signal frame's state: <asm/sigcontext.h>, _xsave_hdr */
enum { EXTENDED = 0x46505853, CODE_OF_KEY = 4 }; /* FP_XSTATE_MAGIC1; SEGV_PKUERR */
enum { WRITE_FAULT = 2 };                        /* in a fault's error code */

static struct {
    bool used, stopped;
    uint32_t place;                 /* of PKRU: bytes into a signal frame's state */
    uint32_t ours;                  /* one bit for each key */
    uint32_t free;                  /* likewise; the first of pairs that no thread has */
    uint32_t no_access, no_writing; /* these bits of all keys for pages that others may read */
} keys;

static __thread uint32_t own __attribute__((tls_model("initial-exec"))); /* the first of its pair; 0: none */
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

static uint32_t bits_of(uint32_t bits, uint32_t key)
{
    return bits << (BITS * key);
}

static uint32_t shared_of(uint32_t key)
{
    return key + PAIRS;
}

/* The rights of the calling thread, given other rights in the same register. */
static uint32_t with_own(uint32_t rights)
{
    rights = (rights & ~keys.no_access) | keys.no_writing;
    return own == 0 ? rights : rights & ~(bits_of(NOTHING, own) | bits_of(NOTHING, shared_of(own)));
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

static void give_to_system(uint32_t key)
{
    ffm_kernel(SYS_pkey_free, key, 0, 0, 0);
    __atomic_and_fetch(&keys.ours, ~(1U << key), __ATOMIC_RELAXED);
}

/* The kernel gives the lowest free key. If that is not the first, the program uses keys. */
void ffm_keys_open(void)
{
    if (keys.used || keys.stopped || !can_be_used())
        return;
    for (uint32_t key = FIRST; key < END; key++) {
        const int64_t given = ffm_kernel(SYS_pkey_alloc, 0, PKEY_DISABLE_ACCESS, 0, 0);
        if (given == (int64_t)key) {
            keys.ours |= 1U << key;
            continue;
        }
        if (given > 0)
            ffm_kernel(SYS_pkey_free, (uint64_t)given, 0, 0, 0);
        while (keys.ours != 0)
            give_to_system((uint32_t)__builtin_ctz(keys.ours));
        return;
    }
    for (uint32_t key = FIRST; key < SHARED; key++) {
        keys.free |= key == CLOSED ? 0 : 1U << key;
        keys.no_access |= bits_of(NO_ACCESS, shared_of(key));
        keys.no_writing |= bits_of(NO_WRITING, shared_of(key));
    }
    keys.used = true;
    ffm_keys_enter();
}

bool ffm_keys_used(void)
{
    return keys.used;
}

uint32_t ffm_keys_take(bool others_read)
{
    if (!keys.used || __atomic_load_n(&keys.stopped, __ATOMIC_RELAXED) || !joined || ffm_threads_lost())
        return 0;
    if (own == 0 && keys.free != 0) {
        own = (uint32_t)__builtin_ctz(keys.free);
        keys.free &= ~(1U << own);
        ffm_keys_enter();
    }
    return own != 0 && others_read ? shared_of(own) : own;
}

void ffm_keys_give_back(void)
{
    if (own == 0)
        return;
    keys.free |= 1U << own;
    set_rights_here(rights_here() | bits_of(NOTHING, own) | bits_of(NO_WRITING, shared_of(own)));
    own = 0;
}

bool ffm_keys_are_mine(uint32_t key)
{
    return own != 0 && (key == own || key == shared_of(own));
}

uint32_t ffm_keys_closed(bool others_read)
{
    if (!keys.used || __atomic_load_n(&keys.stopped, __ATOMIC_RELAXED))
        return 0;
    return others_read ? shared_of(CLOSED) : CLOSED;
}

bool ffm_keys_let_read(uint32_t key)
{
    return SHARED <= key && key < END;
}

uint32_t ffm_keys_both(uint32_t one, uint32_t other)
{
    if (one == other || shared_of(one) == other)
        return one;
    if (shared_of(other) == one)
        return other;
    return ffm_keys_closed(ffm_keys_let_read(one) && ffm_keys_let_read(other));
}

/* The rights of a thread that is admitted have neither bit set for the pages that are closed to all. */
static bool admitted_by(uint32_t rights)
{
    return keys.used && (rights & bits_of(NO_ACCESS, CLOSED)) == 0;
}

/* These bits of all our keys. */
static uint32_t of_ours(uint32_t bits)
{
    uint32_t found = 0;
    for (uint32_t ours = __atomic_load_n(&keys.ours, __ATOMIC_RELAXED); ours != 0; ours &= ours - 1)
        found |= bits_of(bits, (uint32_t)__builtin_ctz(ours));
    return found;
}

bool ffm_keys_admit(void)
{
    if (ffm_keys_closed(false) == 0)
        return false;
    set_rights_here(rights_here() & ~of_ours(NOTHING));
    return true;
}

void ffm_keys_expel(void)
{
    if (ffm_keys_admitted())
        set_rights_here(with_own(rights_here() | of_ours(NOTHING)));
}

bool ffm_keys_admitted(void)
{
    return keys.used && admitted_by(rights_here());
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
    set_rights_here(with_own(rights_here() | of_ours(NOTHING)));
}

void ffm_keys_stop(void)
{
    __atomic_store_n(&keys.stopped, true, __ATOMIC_RELAXED);
    for (; keys.free != 0; keys.free &= keys.free - 1)
        give_to_system((uint32_t)__builtin_ctz(keys.free));
}

void ffm_keys_enter(void)
{
    if (!keys.used)
        return;
    const uint32_t rights = rights_here();
    if (!admitted_by(rights) && with_own(rights) != rights)
        set_rights_here(with_own(rights));
}

/* The register as the interrupted code has it; NULL without this part in its state: then it is 0, and nothing is
 * forbidden. */
static uint32_t *rights_in(const ucontext_t *interrupted)
{
    uint8_t *state = (uint8_t *)interrupted->uc_mcontext.fpregs;
    if (keys.place == 0 || state == NULL || *(const uint32_t *)(state + SOFTWARE) != EXTENDED ||
        !(*(const uint64_t *)(state + HEADER) & 1ULL << PART))
        return NULL;
    return (uint32_t *)(state + keys.place);
}

void ffm_keys_leave(ucontext_t *interrupted)
{
    uint32_t *rights = rights_in(interrupted);
    if (keys.used && rights != NULL && !admitted_by(*rights))
        *rights = with_own(*rights);
}

bool ffm_keys_admit_to(const siginfo_t *info, bool writing, ucontext_t *interrupted)
{
    uint32_t *rights = rights_in(interrupted);
    if (!keys.used || rights == NULL || info->si_code != CODE_OF_KEY) /* si_pkey may be that of a moment later */
        return false;
    *rights &= ~of_ours(writing ? NOTHING : NO_ACCESS);
    return true;
}

void ffm_keys_expel_from(ucontext_t *interrupted)
{
    uint32_t *rights = rights_in(interrupted);
    if (rights != NULL && admitted_by(*rights))
        *rights = with_own(*rights | of_ours(NOTHING));
}

bool ffm_keys_admitted_to(const ucontext_t *interrupted)
{
    const uint32_t *rights = rights_in(interrupted);
    return rights != NULL && admitted_by(*rights);
}

int64_t ffm_keys_program(const uint64_t *arguments, ucontext_t *interrupted)
{
    const int64_t key = ffm_kernel_call(SYS_pkey_alloc, arguments);
    uint32_t *rights = rights_in(interrupted);
    if (key > 0 && rights != NULL) {
        const uint32_t bits = bits_of(NOTHING, (uint32_t)key);
        *rights = (*rights & ~bits) | (rights_here() & bits);
    }
    return key;
}

bool ffm_keys_lacked(const siginfo_t *info, const ucontext_t *interrupted)
{
    if (!keys.used || info->si_code != CODE_OF_KEY)
        return false;
    const bool writing = interrupted->uc_mcontext.gregs[REG_ERR] & WRITE_FAULT;
    return ffm_keys_are_mine(info->si_pkey) || (ffm_keys_let_read(info->si_pkey) && !writing);
}
