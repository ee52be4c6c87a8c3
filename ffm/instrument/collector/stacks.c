#define UNW_LOCAL_ONLY
#include "stacks.h"

#include <libunwind.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "modules.h"
#include "sink.h"

enum { SLOTS = 1 << 17, ARENA = 1 << 20 };

/* An interned stack, kept for exact comparison: two stacks are one only if every frame agrees. */
typedef struct {
    uint64_t hash;
    uint32_t number;
    uint32_t depth;
    uint8_t key[FFM_KEY_BYTES];
    uint64_t frames[];
} interned;

static struct {
    pthread_mutex_t lock;
    ffm_stream stream;
    interned *slots[SLOTS]; /* open addressing; written under the lock, read without it */
    interned *by_number[SLOTS];
    uint32_t count;
    char *arena;
    size_t arena_used;
} stacks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static interned *find(uint64_t hash, const uint64_t *frames, uint32_t depth, uint32_t *slot)
{
    for (*slot = (uint32_t)hash & (SLOTS - 1);; *slot = (*slot + 1) & (SLOTS - 1)) {
        interned *at = __atomic_load_n(&stacks.slots[*slot], __ATOMIC_ACQUIRE);
        if (at == NULL)
            return NULL;
        if (at->hash == hash && at->depth == depth && memcmp(at->frames, frames, depth * sizeof *frames) == 0)
            return at;
    }
}

static void *allocate(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (stacks.arena == NULL || stacks.arena_used + bytes > ARENA) {
        void *pages = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
            return NULL;
        stacks.arena = pages;
        stacks.arena_used = 0;
    }
    void *room = stacks.arena + stacks.arena_used;
    stacks.arena_used += bytes;
    return room;
}

/* Record the stack with its frames as (module, offset), and give it the key by which runs are matched. */
static void record(interned *stack)
{
    struct {
        uint8_t build_id[FFM_BUILD_ID_BYTES];
        uint32_t reserved;
        uint64_t offset;
    } identity[FFM_MAX_FRAMES];
    memset(identity, 0, stack->depth * sizeof *identity);
    size_t bytes = sizeof(ffm_stack) + stack->depth * sizeof(ffm_frame);
    ffm_module_place places[FFM_MAX_FRAMES];
    for (uint32_t i = 0; i < stack->depth; i++) {
        /* A return address can be the first byte after its function: the call lies before it. */
        places[i] = ffm_module_of(stack->frames[i] - (i > 0));
        uint64_t base = places[i].number == FFM_NO_MODULE ? 0 : places[i].base;
        memcpy(identity[i].build_id, places[i].build_id, FFM_BUILD_ID_BYTES);
        identity[i].offset = places[i].number == FFM_NO_MODULE ? 0 : stack->frames[i] - base;
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(identity, stack->depth * sizeof *identity));
    memcpy(stack->key, canonical.digest, FFM_KEY_BYTES);

    ffm_stack *out = ffm_sink_reserve(&stacks.stream, FFM_CHUNK_STACKS, 0, bytes);
    if (out == NULL)
        return;
    out->number = stack->number;
    out->frames = stack->depth;
    memcpy(out->key, stack->key, FFM_KEY_BYTES);
    ffm_frame *frames = (ffm_frame *)(out + 1);
    for (uint32_t i = 0; i < stack->depth; i++) {
        uint64_t base = places[i].number == FFM_NO_MODULE ? 0 : places[i].base;
        frames[i] = (ffm_frame){.module = places[i].number, .offset = stack->frames[i] - base};
    }
    ffm_sink_commit(&stacks.stream, bytes);
}

static uint32_t intern(const uint64_t *frames, uint32_t depth)
{
    uint64_t hash = XXH3_64bits_withSeed(frames, depth * sizeof *frames, ffm_modules_generation());
    uint32_t slot;
    interned *known = find(hash, frames, depth, &slot);
    if (__builtin_expect(known != NULL, 1))
        return known->number;

    pthread_mutex_lock(&stacks.lock);
    known = find(hash, frames, depth, &slot);
    /* A table that is three quarters full stays as it is: later stacks share the number 0, the empty stack. */
    if (known == NULL && stacks.count < SLOTS / 4 * 3) {
        interned *fresh = allocate(sizeof *fresh + depth * sizeof *frames);
        if (fresh != NULL) {
            fresh->hash = hash;
            fresh->depth = depth;
            fresh->number = stacks.count++;
            for (uint32_t i = 0; i < depth; i++)
                fresh->frames[i] = frames[i];
            record(fresh);
            stacks.by_number[fresh->number] = fresh;
            __atomic_store_n(&stacks.slots[slot], fresh, __ATOMIC_RELEASE);
            known = fresh;
        }
    }
    pthread_mutex_unlock(&stacks.lock);
    return known == NULL ? 0 : known->number;
}

void ffm_stacks_open(void)
{
    intern(NULL, 0);
}

uint32_t ffm_stack_here(int skip, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    int depth = unw_backtrace((void **)frames, FFM_MAX_FRAMES);
    *truncated = depth == FFM_MAX_FRAMES;
    skip++; /* this function */
    if (depth < skip)
        depth = skip;
    return intern(frames + skip, (uint32_t)(depth - skip));
}

uint32_t ffm_stack_from(const ffm_registers *registers, bool *truncated)
{
    unw_context_t context;
    memset(&context, 0, sizeof context);
    greg_t *general = context.uc_mcontext.gregs;
    general[REG_RIP] = (greg_t)registers->instruction;
    general[REG_RSP] = (greg_t)registers->stack;
    general[REG_RBP] = (greg_t)registers->frame;
    general[REG_RBX] = (greg_t)registers->rbx;
    general[REG_R12] = (greg_t)registers->r12;
    general[REG_R13] = (greg_t)registers->r13;
    general[REG_R14] = (greg_t)registers->r14;
    general[REG_R15] = (greg_t)registers->r15;
    uint64_t frames[FFM_MAX_FRAMES];
    uint32_t depth = 0;
    unw_cursor_t cursor;
    *truncated = false;
    if (unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME) == 0) {
        do {
            unw_word_t address;
            if (unw_get_reg(&cursor, UNW_REG_IP, &address) != 0 || address == 0)
                break;
            frames[depth++] = address;
            *truncated = depth == FFM_MAX_FRAMES;
        } while (!*truncated && unw_step(&cursor) > 0);
    }
    return intern(frames, depth);
}

/* unw_backtrace as if the function whose registers at its entry are given had called it; 0 where that cannot be done.
 *
 * unw_backtrace remembers frames and makes no system calls, but starts where it is called. So the call is made from a
 * frame of 4096 bytes that ends at the hooked function's return address, below all frames in use (of Frida and ours),
 * and the unwind table says just that of it. */
int ffm_backtrace_at_entry(void **frames, int room, uint64_t stack, uint64_t frame);

__asm__(".pushsection .text\n"
        ".hidden ffm_backtrace_at_entry\n"
        ".globl ffm_backtrace_at_entry\n"
        ".type ffm_backtrace_at_entry, @function\n"
        "ffm_backtrace_at_entry:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbp, 0\n"
        "push %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbx, 0\n"
        "mov %rsp, %rbx\n"
        ".cfi_def_cfa_register %rbx\n"
        "xor %eax, %eax\n"
        "lea 8 - 4096(%rdx), %rdx\n"
        "test $15, %dl\n" /* calls want the stack aligned */
        "jnz 1f\n"
        "cmp %rsp, %rdx\n" /* frames in use would be overwritten */
        "ja 1f\n"
        "mov %rdx, %rsp\n"
        "mov %rcx, %rbp\n"
        ".cfi_remember_state\n"
        ".cfi_def_cfa %rsp, 4096\n"
        ".cfi_same_value %rbp\n"
        ".cfi_undefined %rbx\n"
        "call unw_backtrace@PLT\n"
        ".cfi_restore_state\n"
        "1: mov %rbx, %rsp\n"
        ".cfi_def_cfa_register %rsp\n"
        "pop %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %rbx\n"
        "pop %rbp\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %rbp\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ffm_backtrace_at_entry, . - ffm_backtrace_at_entry\n"
        ".popsection\n");

uint32_t ffm_stack_at_entry(const ffm_registers *registers, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    int depth = ffm_backtrace_at_entry((void **)frames, FFM_MAX_FRAMES, registers->stack, registers->frame);
    if (depth < 2)
        return ffm_stack_from(registers, truncated);
    *truncated = depth == FFM_MAX_FRAMES;
    frames[0] = registers->instruction; /* instead of the frame of ffm_backtrace_at_entry */
    return intern(frames, (uint32_t)depth);
}

const uint8_t *ffm_stack_key(uint32_t number)
{
    return stacks.by_number[number]->key;
}

const uint64_t *ffm_stack_frames(uint32_t number, uint32_t *depth)
{
    *depth = stacks.by_number[number]->depth;
    return stacks.by_number[number]->frames;
}

void ffm_stacks_after_fork(void)
{
    pthread_mutex_init(&stacks.lock, NULL);
    ffm_sink_release(&stacks.stream);
    stacks.stream = (ffm_stream){0};
    memset(stacks.slots, 0, sizeof stacks.slots);
    stacks.count = 0;
    ffm_stacks_open();
}
