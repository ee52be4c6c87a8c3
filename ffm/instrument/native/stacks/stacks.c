#include "stacks.h"

#include <pthread.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "interned.h"
#include "modules.h"
#include "python_frames.h"
#include "signals.h"
#include "sink.h"
#include "unwind_from.h"
#include "unwinding.h"

/* Distinct stacks are recorded whole until they have so many frames together, further ones with their inner frames
 * until they have so many more, and all others with the innermost. A program that searches a tree can have millions,
 * and the memory that they take here and in the reader grows with the frames. */
enum { WHOLE = 3 << 20, INNER = 4 << 20, INNER_FRAMES = 12, INNERMOST_FRAMES = 3 };

/* Of a stack that is not known, and of which there are enough. */
#define NO_STACK UINT32_MAX

/* In stacks of at least DEEP frames, recursion is folded: a cycle of up to LONGEST_CYCLE frames repeats at most REPEATS
 * times. */
enum { DEEP = 48, LONGEST_CYCLE = 4, REPEATS = 8 };

enum { MAX_WORDS = FFM_MAX_FRAMES + FFM_MAX_PYTHON_FRAMES * FFM_PYTHON_WORDS };

static struct {
    pthread_mutex_t lock;
    ffm_stream stream;
    ffm_interned_table by_words; /* written under the lock, read without it */
    ffm_recent_stacks recent;
    ffm_interned_table by_key; /* only stacks with Python frames, several of which can share a key */
    ffm_interned *by_number[FFM_MOST_STACKS];
    uint32_t count; /* numbers assigned */
    uint32_t words; /* of all together */
} stacks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The stack that is being added; under the lock. Not on the stack, because a signal handler's stack is small. */
static struct {
    ffm_module_place places[FFM_MAX_FRAMES];
    ffm_python_place python[FFM_MAX_PYTHON_FRAMES];
    struct {
        uint8_t build_id[FFM_BUILD_ID_BYTES];
        uint32_t reserved;
        uint64_t offset;
    } identity[FFM_MAX_FRAMES];
    uint64_t python_identity[FFM_MAX_PYTHON_FRAMES][2];
    uint8_t key[FFM_KEY_BYTES];
} added;

/* Fill `added`: where the frames are, and the key by which runs are matched.
 *
 * The interpreter's own frames are not part of the key of a stack with Python frames: the Python frames identify the
 * place, while the paths through the interpreter's code change as it specializes. */
static void describe(const uint64_t *words, uint32_t depth, uint32_t python_words)
{
    uint32_t native = 0, functions = 0;
    memset(added.identity, 0, depth * sizeof *added.identity);
    for (uint32_t i = 0; i < depth; i++) {
        /* A return address can be the first byte after its function: the call is before it. */
        added.places[i] = ffm_module_of(words[i] - (i > 0));
        bool inside = added.places[i].number != FFM_NO_MODULE;
        if (inside && python_words > 0 && ffm_python_is_interpreter(added.places[i].base))
            continue;
        memcpy(added.identity[native].build_id, added.places[i].build_id, FFM_BUILD_ID_BYTES);
        added.identity[native++].offset = inside ? words[i] - added.places[i].base : 0;
    }
    for (uint32_t i = 0; i < python_words / FFM_PYTHON_WORDS; i++) {
        added.python[i] = ffm_python_place_of(words + depth + (size_t)i * FFM_PYTHON_WORDS);
        if (added.python[i].frame.code == FFM_NO_CODE)
            continue;
        memcpy(added.python_identity[functions++], added.python[i].identity, sizeof added.python[i].identity);
    }
    XXH128_hash_t hash = XXH3_128bits(added.identity, native * sizeof *added.identity);
    if (python_words > 0)
        hash = XXH3_128bits_withSeed(added.python_identity, functions * sizeof *added.python_identity,
                                     hash.low64 ^ hash.high64);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(added.key, canonical.digest, FFM_KEY_BYTES);
}

/* Record the stack that `added` describes, with its frames as (module, offset), and its Python frames. */
static void record(const ffm_interned *stack, bool truncated)
{
    uint32_t python_frames = stack->python_words / FFM_PYTHON_WORDS;
    size_t bytes = sizeof(ffm_stack) + stack->depth * sizeof(ffm_frame) + python_frames * sizeof(ffm_python_frame);
    ffm_stack *out = ffm_sink_reserve(&stacks.stream, FFM_CHUNK_STACKS, 0, bytes);
    if (out == NULL)
        return;
    *out = (ffm_stack){
        .number = stack->number, .frames = stack->depth, .python_frames = python_frames, .truncated = truncated};
    memcpy(out->key, stack->key, FFM_KEY_BYTES);
    ffm_frame *frames = (ffm_frame *)(out + 1);
    for (uint32_t i = 0; i < stack->depth; i++) {
        uint64_t base = added.places[i].number == FFM_NO_MODULE ? 0 : added.places[i].base;
        frames[i] = (ffm_frame){.module = added.places[i].number, .offset = stack->words[i] - base};
    }
    ffm_python_frame *python = (ffm_python_frame *)(frames + stack->depth);
    for (uint32_t i = 0; i < python_frames; i++)
        python[i] = added.python[i].frame;
    ffm_sink_commit(&stacks.stream, bytes);
}

/* Add a stack under the lock, and return its number. If FFM_MOST_STACKS are known or memory is short, it is 0, that of
 * the empty stack, of which the report says how many operations it has. */
static uint32_t add(uint64_t hash, uint32_t generation, const uint64_t *words, uint32_t depth, uint32_t python_words,
                    bool truncated)
{
    ffm_interned *same = NULL;
    const bool full = stacks.by_words.used >= FFM_MOST_STACKS || stacks.count >= FFM_MOST_STACKS;
    if (full && python_words == 0)
        return 0;
    describe(words, depth, python_words);
    if (python_words > 0)
        same = ffm_interned_find_key(&stacks.by_key, added.key);
    ffm_interned *fresh = full ? NULL : ffm_interned_allocate(depth + python_words);
    if (fresh == NULL)
        return same == NULL ? 0 : same->number;
    *fresh = (ffm_interned){.hash = hash,
                            .generation = generation,
                            .number = same == NULL ? stacks.count : same->number,
                            .depth = depth,
                            .python_words = python_words};
    memcpy(fresh->key, added.key, FFM_KEY_BYTES);
    memcpy(fresh->words, words, (depth + python_words) * sizeof *words);
    if (same == NULL) {
        if (python_words > 0 && !ffm_interned_add_by_key(&stacks.by_key, fresh))
            return 0;
        record(fresh, truncated);
        stacks.by_number[stacks.count++] = fresh;
    }
    __atomic_store_n(&stacks.words, stacks.words + depth + python_words, __ATOMIC_RELAXED);
    (void)ffm_interned_add(&stacks.by_words, fresh); /* if it fails, the stack is recorded once more */
    return fresh->number;
}

/* Number of a stack: `depth` return addresses, followed by the words of its Python frames. NO_STACK if it is new, and
 * all that are known have more than `most` frames with it. */
static uint32_t intern_as_it_is(const uint64_t *words, uint32_t depth, uint32_t python_words, bool truncated,
                                uint32_t most)
{
    const uint32_t generation = ffm_modules_generation();
    ffm_interned **recent;
    const ffm_interned *last = ffm_interned_recent(&stacks.recent, generation, words, depth, python_words, &recent);
    if (__builtin_expect(last != NULL, 1))
        return last->number;
    uint64_t hash = XXH3_64bits_withSeed(words, (depth + python_words) * sizeof *words, generation);
    ffm_interned *known = ffm_interned_find(&stacks.by_words, hash, words, depth, python_words);
    if (known != NULL) {
        __atomic_store_n(recent, known, __ATOMIC_RELEASE);
        return known->number;
    }
    if (__atomic_load_n(&stacks.words, __ATOMIC_RELAXED) + depth + python_words > most)
        return NO_STACK;

    const uint64_t before = ffm_signals_set_mask(~FFM_SIGNALS_OURS); /* a handler may come by here as well */
    pthread_mutex_lock(&stacks.lock);
    known = ffm_interned_find(&stacks.by_words, hash, words, depth, python_words);
    uint32_t number = known != NULL ? known->number : add(hash, generation, words, depth, python_words, truncated);
    pthread_mutex_unlock(&stacks.lock);
    ffm_signals_set_mask(before);
    return number;
}

static uint32_t least(uint32_t one, uint32_t other)
{
    return one < other ? one : other;
}

/* Copy frames, and leave out what repeats a cycle of `period` frames more often than REPEATS times. */
static uint32_t folded(uint64_t *to, const uint64_t *frames, uint32_t depth, uint32_t period)
{
    const uint32_t most = (REPEATS - 1) * period;
    uint32_t kept = 0, same = 0; /* frames copied, and how many of the last ones continue a cycle */
    for (uint32_t i = 0; i <= depth; i++) {
        const bool repeats = i < depth && i >= period && frames[i] == frames[i - period];
        if (!repeats && same > most) /* whole cycles are left out, and the rest is kept */
            for (uint32_t rest = (same - most) % period; rest > 0; rest--)
                to[kept++] = frames[i - rest];
        same = repeats ? same + 1 : 0;
        if (i < depth && same <= most)
            to[kept++] = frames[i];
    }
    return kept;
}

static __attribute__((noinline)) uint32_t intern_deep(const uint64_t *words, uint32_t depth, bool truncated)
{
    uint64_t one[FFM_MAX_FRAMES], other[FFM_MAX_FRAMES];
    memcpy(one, words, depth * sizeof *words);
    for (uint32_t period = 1; period <= LONGEST_CYCLE; period += 2) {
        depth = folded(other, one, depth, period);
        depth = folded(one, other, depth, period + 1);
    }
    return intern_as_it_is(one, depth, 0, truncated, WHOLE);
}

/* With at most so many inner frames. */
static __attribute__((noinline)) uint32_t intern_inner(const uint64_t *words, uint32_t depth, uint32_t python_words,
                                                       uint32_t frames, uint32_t most)
{
    uint64_t inner[INNER_FRAMES * (1 + FFM_PYTHON_WORDS)];
    const uint32_t native = least(depth, frames), python = least(python_words, frames * FFM_PYTHON_WORDS);
    memcpy(inner, words, native * sizeof *words);
    memcpy(inner + native, words + depth, python * sizeof *words);
    return intern_as_it_is(inner, native, python, native < depth || python < python_words, most);
}

/* The same, within limits: sets *truncated if frames had to be left out. */
static uint32_t intern(const uint64_t *words, uint32_t depth, uint32_t python_words, bool *truncated)
{
    const bool deep = depth >= DEEP && python_words == 0; /* Python frames are matched with native ones by number */
    uint32_t number =
        deep ? intern_deep(words, depth, *truncated) : intern_as_it_is(words, depth, python_words, *truncated, WHOLE);
    if (__builtin_expect(number != NO_STACK, 1))
        return number;
    *truncated = true;
    number = intern_inner(words, depth, python_words, INNER_FRAMES, INNER);
    if (number == NO_STACK)
        number = intern_inner(words, depth, python_words, INNERMOST_FRAMES, UINT32_MAX);
    return number;
}

/* In a separate frame, because the frame from which the native frames are captured must be small. */
static __attribute__((noinline)) uint32_t intern_with_python(const uint64_t *frames, uint32_t depth, bool *truncated)
{
    uint64_t words[MAX_WORDS];
    memcpy(words, frames, depth * sizeof *frames);
    uint32_t python_words = ffm_python_walk(words + depth, truncated);
    return intern(words, depth, python_words, truncated);
}

/* Number of the calling thread's stack, whose native frames are given. */
static inline uint32_t intern_here(const uint64_t *frames, uint32_t depth, bool *truncated)
{
    if (__builtin_expect(ffm_python_is_readable(), 0))
        return intern_with_python(frames, depth, truncated);
    return intern(frames, depth, 0, truncated);
}

/* Until its first use, the C library allocates a thread's unwinder variables under the dynamic linker's lock. Later,
 * that lock may be held by a thread that waits for what the calling one holds. */
__attribute__((constructor)) static void use_unwinder(void)
{
    void *frame;
    unw_backtrace(&frame, 1);
}

void ffm_stacks_open(void)
{
    const uint64_t nothing = 0; /* memcmp may not be given a null pointer, even for no bytes */
    intern_as_it_is(&nothing, 0, 0, false, WHOLE);
}

uint32_t ffm_stack_here(int skip, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    ffm_unwinding_begin();
    int depth = unw_backtrace((void **)frames, FFM_MAX_FRAMES);
    *truncated = depth == FFM_MAX_FRAMES;
    skip++; /* this function */
    if (depth < skip)
        depth = skip;
    uint32_t number = intern_here(frames + skip, (uint32_t)(depth - skip), truncated);
    ffm_unwinding_end();
    return number;
}

uint32_t ffm_stack_walk(const ffm_registers *registers, uint64_t *frames, uint32_t room, bool *truncated)
{
    unw_context_t context;
    unw_cursor_t cursor;
    uint32_t depth = 0;
    *truncated = false;
    if (!ffm_unwind_from(&cursor, &context, registers))
        return 0;
    do {
        unw_word_t address;
        if (unw_get_reg(&cursor, UNW_REG_IP, &address) != 0 || address == 0)
            break;
        frames[depth++] = address;
        *truncated = depth == room;
    } while (!*truncated && unw_step(&cursor) > 0);
    return depth;
}

uint32_t ffm_stack_from(const ffm_registers *registers, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    ffm_unwinding_begin();
    const uint32_t depth = ffm_stack_walk(registers, frames, FFM_MAX_FRAMES, truncated);
    uint32_t number = intern_here(frames, depth, truncated);
    ffm_unwinding_end();
    return number;
}

/* unw_backtrace as if called by the function whose registers at its entry are given; 0 if that is not possible.
 *
 * unw_backtrace caches frames and makes no system calls, but starts where it is called. So it is called from a frame of
 * 4096 bytes that ends at the hooked function's return address, below all frames in use (Frida's and ours), and the
 * unwind table describes just that frame. */
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
    uint32_t number;
    ffm_unwinding_begin();
    int depth = ffm_backtrace_at_entry((void **)frames, FFM_MAX_FRAMES, registers->stack, registers->frame);
    if (depth < 2) {
        number = ffm_stack_from(registers, truncated);
    } else {
        *truncated = depth == FFM_MAX_FRAMES;
        frames[0] = registers->instruction; /* instead of the frame of ffm_backtrace_at_entry */
        number = intern_here(frames, (uint32_t)depth, truncated);
    }
    ffm_unwinding_end();
    return number;
}

/* Where the caller's frame is in a stack that was captured within the function; its depth if it is not there. */
static uint32_t place_of(uint64_t caller, const uint64_t *frames, uint32_t depth)
{
    uint32_t place = 0;
    while (place < depth && frames[place] != caller)
        place++;
    return place;
}

/* The frames in between are ours and tell nothing: they are not unwound. */
uint32_t ffm_stack_of_caller(const uint64_t *frame, bool *truncated)
{
    uint64_t frames[FFM_MAX_FRAMES];
    ffm_unwinding_begin();
    int depth = ffm_backtrace_at_entry((void **)frames, FFM_MAX_FRAMES, (uint64_t)(frame + 1), frame[0]);
    if (__builtin_expect(depth < 2, 0))
        depth = unw_backtrace((void **)frames, FFM_MAX_FRAMES);
    *truncated = depth == FFM_MAX_FRAMES;
    const uint32_t place = place_of(frame[1], frames, (uint32_t)depth);
    uint32_t number = intern_here(frames + place, (uint32_t)depth - place, truncated);
    ffm_unwinding_end();
    return number;
}

uint32_t ffm_stack_number(const uint64_t *frames, uint32_t depth)
{
    bool truncated = false;
    return intern(frames, depth, 0, &truncated);
}

const uint8_t *ffm_stack_key(uint32_t number)
{
    return stacks.by_number[number]->key;
}

const uint64_t *ffm_stack_frames(uint32_t number, uint32_t *depth)
{
    *depth = stacks.by_number[number]->depth;
    return stacks.by_number[number]->words;
}

void ffm_stacks_after_fork(void)
{
    pthread_mutex_init(&stacks.lock, NULL);
    ffm_sink_release(&stacks.stream);
    stacks.stream = (ffm_stream){0};
    ffm_interned_clear(&stacks.by_words);
    ffm_interned_clear(&stacks.by_key);
    stacks.recent = (ffm_recent_stacks){0};
    stacks.count = 0;
    stacks.words = 0;
    ffm_stacks_open();
}
