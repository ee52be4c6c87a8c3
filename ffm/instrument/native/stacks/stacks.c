#include "stacks.h"

#include <pthread.h>
#include <string.h>

#include "described_stacks.h"
#include "interned.h"
#include "modules.h"
#include "numbered_stacks.h"
#include "python_frames.h"
#include "signal_mask.h"

/* Distinct stacks are recorded whole until all their chains (ffm_stack) have WHOLE frames. Further ones are recorded
 * with their inner frames, up to INNER frames in all, and the rest with their innermost frames only. The memory that
 * stacks take here and in the reader grows with these frames. */
enum { WHOLE = 4 << 20, INNER = 5 << 20, INNER_FRAMES = FFM_INNER_FRAMES, INNERMOST_FRAMES = 3 };

/* How many words of stacks are kept. A stack whose words are kept is found again without a hash. */
enum { MOST_WORDS = 3 << 20 };

/* In place of the number of an unknown stack, when there are enough. */
#define NO_STACK UINT32_MAX

/* In stacks of at least DEEP frames, recursion is folded: a cycle of up to LONGEST_CYCLE frames repeats at most REPEATS
 * times. */
enum { DEEP = 48, LONGEST_CYCLE = 4, REPEATS = 8 };

enum { MAX_WORDS = FFM_MAX_FRAMES + FFM_MAX_PYTHON_FRAMES * FFM_PYTHON_WORDS };

static struct {
    pthread_mutex_t lock;
    ffm_interned_table by_words; /* written under the lock, read without it */
    ffm_recent_stacks recent;
    ffm_interned_table by_key; /* only stacks with Python frames, several of which can share a key */
    ffm_interned *by_number[FFM_MOST_STACKS];
    uint32_t count; /* numbers assigned */
    uint32_t words; /* kept, of all together */
} stacks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Add a stack under the lock, and return its number. If FFM_MOST_STACKS are known or memory is short, that is 0, the
 * empty stack; the report says how many operations it has. */
static uint32_t add(ffm_stack_hash hash, uint32_t generation, const ffm_captured_stack *captured, bool truncated)
{
    ffm_interned *same = NULL;
    uint8_t key[FFM_KEY_BYTES];
    const uint32_t python_words = captured->python_words, count = captured->depth + python_words;
    const uint32_t kept = stacks.words + count > MOST_WORDS ? 0 : count;
    const bool full = stacks.by_words.used >= FFM_MOST_STACKS || stacks.count >= FFM_MOST_STACKS;
    if (full && python_words == 0)
        return 0;
    ffm_stack_describe(captured, key);
    if (python_words > 0)
        same = ffm_interned_find_key(&stacks.by_key, key);
    ffm_interned *fresh = full ? NULL : ffm_interned_allocate(kept);
    if (fresh == NULL)
        return same == NULL ? 0 : same->number;
    *fresh = (ffm_interned){.hash = hash,
                            .function = captured->function,
                            .generation = generation,
                            .number = same == NULL ? stacks.count : same->number,
                            .depth = (uint16_t)captured->depth,
                            .python_words = (uint16_t)python_words,
                            .kept = kept > 0 || count == 0};
    memcpy(fresh->key, key, FFM_KEY_BYTES);
    memcpy(fresh->words, captured->words, kept * sizeof *fresh->words);
    if (same == NULL) {
        if (!ffm_stack_record(fresh, captured->words, truncated) ||
            (python_words > 0 && !ffm_interned_add_by_key(&stacks.by_key, fresh)))
            return 0;
        stacks.by_number[stacks.count++] = fresh;
    }
    stacks.words += kept;
    (void)ffm_interned_add(&stacks.by_words, fresh); /* if it fails, the stack is recorded once more */
    return fresh->number;
}

/* Number of a stack. NO_STACK if it is new and recording it could exceed `most` frames. */
static uint32_t intern_as_it_is(const ffm_captured_stack *captured, bool truncated, uint32_t most)
{
    const uint32_t generation = ffm_modules_generation();
    ffm_interned **recent;
    const ffm_interned *last = ffm_interned_recent(&stacks.recent, generation, captured, &recent);
    if (__builtin_expect(last != NULL, 1))
        return last->number;
    const ffm_stack_hash hash = ffm_interned_hash(captured, generation);
    ffm_interned *known = ffm_interned_find(&stacks.by_words, hash);
    if (known != NULL) {
        if (known->kept)
            __atomic_store_n(recent, known, __ATOMIC_RELEASE);
        return known->number;
    }
    if (ffm_stack_frames_recorded() + captured->depth + captured->python_words / FFM_PYTHON_WORDS > most)
        return NO_STACK;

    const uint64_t before = ffm_signals_set_mask(~FFM_SIGNALS_OURS); /* a handler may come by here as well */
    pthread_mutex_lock(&stacks.lock);
    known = ffm_interned_find(&stacks.by_words, hash);
    uint32_t number = known != NULL ? known->number : add(hash, generation, captured, truncated);
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

static __attribute__((noinline)) uint32_t intern_deep(const ffm_captured_stack *captured, bool truncated)
{
    uint64_t one[FFM_MAX_FRAMES], other[FFM_MAX_FRAMES];
    uint32_t depth = captured->depth;
    memcpy(one, captured->words, depth * sizeof *one);
    for (uint32_t period = 1; period <= LONGEST_CYCLE; period += 2) {
        depth = folded(other, one, depth, period);
        depth = folded(one, other, depth, period + 1);
    }
    return intern_as_it_is(&(ffm_captured_stack){one, depth, 0, captured->function}, truncated, WHOLE);
}

/* With at most so many inner frames. */
static __attribute__((noinline)) uint32_t intern_inner(const ffm_captured_stack *captured, uint32_t frames,
                                                       uint32_t most)
{
    uint64_t inner[INNER_FRAMES * (1 + FFM_PYTHON_WORDS)];
    const uint64_t *words = captured->words;
    const uint32_t native = least(captured->depth, frames);
    const uint32_t python = least(captured->python_words, frames * FFM_PYTHON_WORDS);
    memcpy(inner, words, native * sizeof *words);
    memcpy(inner + native, words + captured->depth, python * sizeof *words);
    return intern_as_it_is(&(ffm_captured_stack){inner, native, python, captured->function},
                           native < captured->depth || python < captured->python_words, most);
}

/* The same, within limits: sets *truncated if frames had to be left out. */
static uint32_t intern(const ffm_captured_stack *captured, bool *truncated)
{
    /* Python frames are matched with native ones by number. */
    const bool deep = captured->depth >= DEEP && captured->python_words == 0;
    uint32_t number = deep ? intern_deep(captured, *truncated) : intern_as_it_is(captured, *truncated, WHOLE);
    if (__builtin_expect(number != NO_STACK, 1))
        return number;
    *truncated = true;
    number = intern_inner(captured, INNER_FRAMES, INNER);
    if (number == NO_STACK)
        number = intern_inner(captured, INNERMOST_FRAMES, UINT32_MAX);
    return number;
}

/* In a separate frame: most programs have no Python, and need no room for its words. */
static __attribute__((noinline)) uint32_t intern_with_python(const uint64_t *frames, uint32_t depth,
                                                             const char *function, bool *truncated)
{
    uint64_t words[MAX_WORDS];
    memcpy(words, frames, depth * sizeof *frames);
    const uint32_t python_words = ffm_python_walk(words + depth, truncated);
    return intern(&(ffm_captured_stack){words, depth, python_words, function}, truncated);
}

uint32_t ffm_stack_intern(const uint64_t *frames, uint32_t depth, const char *function, bool *truncated)
{
    if (__builtin_expect(ffm_python_is_readable(), 0))
        return intern_with_python(frames, depth, function, truncated);
    return intern(&(ffm_captured_stack){frames, depth, 0, function}, truncated);
}

void ffm_stacks_open(void)
{
    const uint64_t nothing = 0; /* no function may be given a null pointer, even for no bytes */
    intern_as_it_is(&(ffm_captured_stack){&nothing, 0, 0, NULL}, false, WHOLE);
}

uint32_t ffm_stack_number(const uint64_t *frames, uint32_t depth)
{
    bool truncated = false;
    return intern(&(ffm_captured_stack){frames, depth, 0, NULL}, &truncated);
}

const uint8_t *ffm_stack_key(uint32_t number)
{
    return stacks.by_number[number]->key;
}

uint32_t ffm_stack_frames(uint32_t number, uint64_t *frames, uint32_t room)
{
    return ffm_stack_frames_of(stacks.by_number[number], frames, room);
}

void ffm_stacks_after_fork(void)
{
    pthread_mutex_init(&stacks.lock, NULL);
    ffm_described_after_fork();
    ffm_interned_clear(&stacks.by_words);
    ffm_interned_clear(&stacks.by_key);
    stacks.recent = (ffm_recent_stacks){0};
    stacks.count = 0;
    stacks.words = 0;
    ffm_stacks_open();
}
