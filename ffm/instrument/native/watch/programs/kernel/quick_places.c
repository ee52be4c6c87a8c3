#include "quick_places.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "call_sites.h"
#include "code_changes.h"
#include "kernel.h"
#include "mappings.h"

enum { PLACES = 64, PLACE_BYTES = 16, COUNTED = 256, TRIES = 8, OFTEN = 100, ATTEMPTS = 10 };

enum { ROOMS = 4, ROOM = 4096, STEP = 2 << 20, FURTHEST = 0x7F000000 }; /* bytes; a jump spans a little more */

#ifndef MAP_FIXED_NOREPLACE /* Linux 4.17 */
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Where the program's code leaves for a place, and where it goes on. */
typedef struct {
    uint64_t behind, start;
} site;

site ffm_quick_sites[PLACES] __attribute__((visibility("hidden")));

/* In a place, as words from the frame pointer; above it are the 128 bytes that belong to the interrupted code. */
enum { NUMBER = -1, FRAME = 0, BEHIND = 1, ABOVE = 2 };
enum { RED_ZONE = 128 };

#define EACH_VECTOR(X)                                                                                                 \
    X(0)                                                                                                               \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define KEEP(number) "movaps %xmm" #number ", 16*" #number "(%rsp)\n"
#define BRING_BACK(number) "movaps 16*" #number "(%rsp), %xmm" #number "\n"

/* Call a function of ours with the number and the arguments; its answer is in %al. */
#define ASK(function)                                                                                                  \
    "push %r9\n"                                                                                                       \
    "push %r8\n"                                                                                                       \
    "push %r10\n"                                                                                                      \
    "push %rdx\n"                                                                                                      \
    "push %rsi\n"                                                                                                      \
    "push %rdi\n"                                                                                                      \
    "mov -8(%rbp), %rdi\n"                                                                                             \
    "mov %rsp, %rsi\n"                                                                                                 \
    "and $-16, %rsp\n"                                                                                                 \
    "sub $256, %rsp\n" EACH_VECTOR(KEEP) "call " #function "\n" EACH_VECTOR(BRING_BACK) "lea -56(%rbp), %rsp\n"        \
                                                                                        "pop %rdi\n"                   \
                                                                                        "pop %rsi\n"                   \
                                                                                        "pop %rdx\n"                   \
                                                                                        "pop %r10\n"                   \
                                                                                        "pop %r8\n"                    \
                                                                                        "pop %r9\n"

/* Go back to the address in %rcx, where a system call leaves it as well. */
#define GO_BACK                                                                                                        \
    ".cfi_remember_state\n"                                                                                            \
    "mov %rbp, %rsp\n"                                                                                                 \
    "pop %rbp\n"                                                                                                       \
    ".cfi_def_cfa %rsp, 136\n"                                                                                         \
    ".cfi_restore %rbp\n"                                                                                              \
    "lea 136(%rsp), %rsp\n"                                                                                            \
    ".cfi_def_cfa_offset 0\n"                                                                                          \
    ".cfi_register %rip, %rcx\n"                                                                                       \
    "jmp *%rcx\n"                                                                                                      \
    ".cfi_restore_state\n"

/* At first, RAX holds the number, and RCX and R11 nothing that the program needs, as the call will overwrite them. From
 * ffm_quick_check to ffm_quick_answered, the other registers but those of the stack are the program's. To unwinders,
 * the program's code has called all this. */
__asm__(".text\n"
        ".hidden ffm_quick_sites\n"
        ".hidden ffm_quick_call_made\n"
        ".hidden ffm_quick_call_begins\n"
        ".hidden ffm_quick_call_over\n"
        ".globl ffm_quick_places\n"
        ".hidden ffm_quick_places\n"
        ".globl ffm_quick_check\n"
        ".hidden ffm_quick_check\n"
        ".globl ffm_quick_made\n"
        ".hidden ffm_quick_made\n"
        ".globl ffm_quick_answered\n"
        ".hidden ffm_quick_answered\n"
        ".balign 16\n"
        "ffm_quick_places:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa %rsp, 0\n"
        ".cfi_escape 0x10, 16, 2, 0x72, 0\n" /* DW_CFA_expression: %rip is at the address in %rcx (DW_OP_breg2) */
        ".set place, 0\n"
        ".rept 64\n"
        "lea ffm_quick_sites + 16 * place(%rip), %rcx\n"
        "jmp 1f\n"
        ".balign 16\n"
        ".set place, place + 1\n"
        ".endr\n"
        "1: lea -128(%rsp), %rsp\n"
        ".cfi_def_cfa_offset 128\n"
        "push (%rcx)\n"
        ".cfi_def_cfa_offset 136\n"
        ".cfi_offset %rip, -136\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 144\n"
        ".cfi_offset %rbp, -144\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "push %rax\n"
        /**/ ASK(ffm_quick_call_begins) /**/
        "test %al, %al\n"
        "jz 2f\n"
        "mov ffm_quick_call_made@gottpoff(%rip), %rcx\n"
        "mov -8(%rbp), %rax\n"
        "ffm_quick_check:\n"
        "cmpb $0, %fs:(%rcx)\n"
        "je 2f\n"
        "syscall\n"
        "ffm_quick_made:\n"
        "cmp $-14, %rax\n" /* EFAULT: the memory may have been closed meanwhile */
        "je 2f\n"
        "mov %rax, -8(%rbp)\n"
        "ffm_quick_answered:\n"
        /**/ ASK(ffm_quick_call_over) /**/
        "mov -8(%rbp), %rax\n"
        "mov 8(%rbp), %rcx\n"
        /**/ GO_BACK /**/
        "2:\n"
        /**/ ASK(ffm_quick_call_over) /**/
        "mov -8(%rbp), %rax\n"
        "mov 8(%rbp), %rcx\n"
        "sub $2, %rcx\n" /* the program's own call */
        /**/ GO_BACK     /**/
        ".cfi_endproc\n");

extern const uint8_t ffm_quick_places[], ffm_quick_check[], ffm_quick_made[], ffm_quick_answered[];

static struct {
    bool stopped, busy;
    uint32_t places;       /* taken */
    uint64_t rooms[ROOMS]; /* 0: none */
    struct {
        uint64_t behind;
        uint32_t calls;
    } counted[COUNTED];
} quick;

/* Jumps reach 2 GiB, and drivers reserve more between us and other libraries. So a jump leads to code near it, which
 * does what the jump has replaced and then goes on to the place. */
enum { WAY_BYTES = ROOM / PLACES };

static void fill_way(uint8_t *way, uint32_t place, const ffm_call_site *found)
{
    static const uint8_t jump_to_next_word[] = {0xFF, 0x25, 0, 0, 0, 0};
    const uint8_t *target = ffm_quick_places + (size_t)place * PLACE_BYTES;
    _Static_assert(sizeof found->code + sizeof jump_to_next_word + sizeof target <= WAY_BYTES, "");
    memcpy(way, found->code, found->bytes);
    memcpy(way + found->bytes, jump_to_next_word, sizeof jump_to_next_word);
    memcpy(way + found->bytes + sizeof jump_to_next_word, &target, sizeof target);
}

/* 0 if there is memory already, or this one must not be executed. */
static uint64_t new_room_at(uint64_t address)
{
    const uint64_t wanted[6] = {
        address, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, UINT64_MAX, 0};
    const int64_t room = ffm_kernel_call(SYS_mmap, wanted);
    if (room == (int64_t)address && ffm_kernel(SYS_mprotect, address, ROOM, PROT_READ | PROT_EXEC, 0) == 0)
        return address;
    if (room > 0)
        ffm_kernel(SYS_munmap, (uint64_t)room, ROOM, 0, 0);
    return 0;
}

/* Above an address only if there is nothing free below: the stack may grow there. */
static uint64_t new_room(uint64_t address)
{
    const uint64_t page = address & ~(uint64_t)(ROOM - 1);
    uint64_t room = 0;
    for (uint64_t below = STEP; room == 0 && below < FURTHEST && below < page; below += STEP)
        room = new_room_at(page - below);
    for (uint64_t above = STEP; room == 0 && above < FURTHEST; above += STEP)
        room = new_room_at(page + above);
    return room;
}

/* Room for code that leads to a place, and that a jump in this code reaches; NULL if there is none. */
static uint8_t *way_to(uint32_t place, const uint8_t *code)
{
    for (uint32_t i = 0; i < ROOMS; i++) {
        if (quick.rooms[i] == 0)
            __atomic_store_n(&quick.rooms[i], new_room((uint64_t)code), __ATOMIC_RELEASE);
        uint8_t *room = (uint8_t *)quick.rooms[i]; // NOLINT(performance-no-int-to-ptr)
        if (room == NULL || ffm_jump_reaches(code, room + (size_t)place * WAY_BYTES))
            return room == NULL ? NULL : room + (size_t)place * WAY_BYTES;
    }
    return NULL;
}

static void lead(const ucontext_t *context)
{
    const uint64_t behind = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    ffm_call_site found;
    if (quick.places == PLACES || !ffm_call_site_find(context, &found))
        return;
    const ffm_mapping mapping = ffm_mappings_at(found.start);
    if (mapping.writable || !mapping.is_private || !mapping.of_file || behind > mapping.end)
        return;
    uint8_t *code = (uint8_t *)found.start; // NOLINT(performance-no-int-to-ptr)
    uint8_t *way = way_to(quick.places, code);
    if (way == NULL || !ffm_code_open((uint64_t)way, false))
        return;
    fill_way(way, quick.places, &found);
    ffm_code_close((uint64_t)way);
    if (!ffm_code_open(found.start, false))
        return;
    ffm_quick_sites[quick.places++] = (site){.behind = behind, .start = found.start};
    ffm_jump_put(code, way);
    ffm_code_close(found.start);
}

void ffm_quick_place_called(const ucontext_t *context)
{
    const uint64_t behind = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    if (__atomic_load_n(&quick.stopped, __ATOMIC_RELAXED))
        return;
    for (uint32_t i = 0; i < TRIES; i++) {
        const uint64_t place = (behind + i) % COUNTED;
        uint64_t there = 0;
        if (!__atomic_compare_exchange_n(&quick.counted[place].behind, &there, behind, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE) &&
            there != behind)
            continue;
        const uint32_t calls = __atomic_add_fetch(&quick.counted[place].calls, 1, __ATOMIC_RELAXED);
        if (calls % OFTEN != 0 || calls > OFTEN * ATTEMPTS || __atomic_test_and_set(&quick.busy, __ATOMIC_ACQUIRE))
            return;
        lead(context);
        __atomic_clear(&quick.busy, __ATOMIC_RELEASE);
        return;
    }
}

void ffm_quick_places_stop(void)
{
    __atomic_store_n(&quick.stopped, true, __ATOMIC_RELAXED);
}

/* Whether the call of a site has not begun: its place has just been entered, or is about to be. */
static bool is_entering(uint64_t at, uint64_t *start)
{
    uint64_t place = (at - (uint64_t)ffm_quick_places) / PLACE_BYTES;
    for (uint32_t i = 0; i < ROOMS && place >= PLACES; i++)
        place = (at - __atomic_load_n(&quick.rooms[i], __ATOMIC_ACQUIRE)) / WAY_BYTES;
    if (place >= PLACES)
        return false;
    *start = ffm_quick_sites[place].start;
    return true;
}

void ffm_quick_place_leave(ucontext_t *interrupted)
{
    greg_t *registers = interrupted->uc_mcontext.gregs;
    const uint64_t at = (uint64_t)registers[REG_RIP], made = (uint64_t)ffm_quick_made;
    uint64_t start;
    if (is_entering(at, &start))
        registers[REG_RIP] = (greg_t)start;
    if (at < (uint64_t)ffm_quick_check || at >= (uint64_t)ffm_quick_answered)
        return;
    const uint64_t *frame = (const uint64_t *)registers[REG_RBP]; // NOLINT(performance-no-int-to-ptr)
    const bool again = at < made || registers[REG_RAX] == -EFAULT;
    if (again && at >= made)
        registers[REG_RAX] = (greg_t)frame[NUMBER];
    registers[REG_RIP] = (greg_t)(frame[BEHIND] - (again ? FFM_CALL_BYTES : 0));
    registers[REG_RSP] = (greg_t)((uint64_t)(frame + ABOVE) + RED_ZONE);
    registers[REG_RBP] = (greg_t)frame[FRAME];
}

void ffm_quick_places_after_fork(void)
{
    __atomic_clear(&quick.busy, __ATOMIC_RELEASE);
}
