#include "described_stacks.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "frame_tree.h"
#include "modules.h"
#include "python_frames.h"
#include "sink.h"

enum { FRAME_BYTES = sizeof(ffm_chained_frame) };
_Static_assert(sizeof(ffm_chained_python_frame) == FRAME_BYTES, "both kinds of frames are recorded alike");

/* Not on the stack, because a signal handler's stack is small. */
static struct {
    ffm_module_place places[FFM_MAX_FRAMES];
    ffm_python_place python[FFM_MAX_PYTHON_FRAMES];
    struct {
        uint8_t build_id[FFM_BUILD_ID_BYTES];
        uint32_t reserved;
        uint64_t offset;
    } identity[FFM_MAX_FRAMES];
    uint64_t python_identity[FFM_MAX_PYTHON_FRAMES][2];
} described;

/* All chains of one kind of frames. */
typedef struct {
    uint32_t kind;       /* of the chunks that have them */
    const void *unknown; /* a frame that could not be recorded */
    ffm_stream stream;
    ffm_frame_tree tree;
} chains;

static struct {
    ffm_stream stacks;
    chains native, python;
    uint32_t frames; /* in all chains */
} recording = {
    .native = {.kind = FFM_CHUNK_FRAMES, .unknown = &(const ffm_chained_frame){.module = FFM_NO_MODULE}},
    .python = {.kind = FFM_CHUNK_PYTHON_FRAMES, .unknown = &(const ffm_chained_python_frame){.code = FFM_NO_CODE}},
};

/* The interpreter's own frames are not part of the key of a stack with Python frames: the Python frames identify the
 * place, while the paths through the interpreter's code change as it specializes. */
void ffm_stack_describe(const ffm_captured_stack *captured, uint8_t *key)
{
    const uint64_t *words = captured->words;
    const uint32_t depth = captured->depth, python_words = captured->python_words;
    uint32_t native = 0, functions = 0;
    memset(described.identity, 0, depth * sizeof *described.identity);
    for (uint32_t i = 0; i < depth; i++) {
        /* A return address can be the first byte after its function: the call is before it. */
        described.places[i] = ffm_module_of(words[i] - (i > 0));
        bool inside = described.places[i].number != FFM_NO_MODULE;
        if (inside && python_words > 0 && ffm_python_is_interpreter(described.places[i].base))
            continue;
        memcpy(described.identity[native].build_id, described.places[i].build_id, FFM_BUILD_ID_BYTES);
        described.identity[native++].offset = inside ? words[i] - described.places[i].base : 0;
    }
    for (uint32_t i = 0; i < python_words / FFM_PYTHON_WORDS; i++) {
        described.python[i] = ffm_python_place_of(words + depth + (size_t)i * FFM_PYTHON_WORDS);
        if (described.python[i].frame.code == FFM_NO_CODE)
            continue;
        memcpy(described.python_identity[functions++], described.python[i].identity,
               sizeof described.python[i].identity);
    }
    XXH128_hash_t hash = XXH3_128bits(described.identity, native * sizeof *described.identity);
    if (python_words > 0)
        hash = XXH3_128bits_withSeed(described.python_identity, functions * sizeof *described.python_identity,
                                     hash.low64 ^ hash.high64);
    if (captured->function != NULL)
        hash = XXH3_128bits_withSeed(captured->function, strlen(captured->function), hash.low64 ^ hash.high64);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(key, canonical.digest, FFM_KEY_BYTES);
}

static bool record(ffm_stream *stream, uint32_t kind, const void *what, size_t bytes)
{
    void *out = ffm_sink_reserve(stream, kind, 0, bytes);
    if (out == NULL)
        return false;
    memcpy(out, what, bytes);
    ffm_sink_commit(stream, bytes);
    return true;
}

/* Record a new frame, numbered by its row. If frames before it could not be recorded, `unknown` takes their places. */
static void record_frame(chains *all, uint32_t number, const void *row)
{
    while (all->stream.written + 1 < number && record(&all->stream, all->kind, all->unknown, FRAME_BYTES))
        continue;
    if (all->stream.written + 1 == number)
        record(&all->stream, all->kind, row, FRAME_BYTES);
    __atomic_store_n(&recording.frames, recording.frames + 1, __ATOMIC_RELAXED);
}

/* Put a frame before the chain *number, of which it becomes the first. False if memory is short. */
static bool chain(uint64_t word, uint32_t i, uint32_t *number)
{
    const ffm_module_place *place = &described.places[i];
    const uint64_t base = place->number == FFM_NO_MODULE ? 0 : place->base;
    const ffm_chained_frame row = {.next = *number, .module = place->number, .offset = word - base};
    const ffm_frame_node node = {.value = word, .label = row.module, .next = row.next};
    bool fresh;
    *number = ffm_frame_tree_number(&recording.native.tree, &node, &fresh);
    if (fresh)
        record_frame(&recording.native, *number, &row);
    return *number != 0;
}

static bool chain_python(uint32_t i, uint32_t *number)
{
    const ffm_python_frame *frame = &described.python[i].frame;
    const uint32_t entry = (frame->flags & FFM_PYTHON_ENTRY) << FFM_COLUMN_BITS;
    const ffm_chained_python_frame row = {
        .next = *number, .code = frame->code, .line = frame->line, .column = frame->column | entry};
    const ffm_frame_node node = {.value = (uint64_t)row.code << 32 | row.line, .label = row.column, .next = row.next};
    bool fresh;
    *number = ffm_frame_tree_number(&recording.python.tree, &node, &fresh);
    if (fresh)
        record_frame(&recording.python, *number, &row);
    return *number != 0;
}

/* Both chains of native frames: the inner one begins with its outermost frame, because the innermost frames are those
 * of the driver and the runtime, which are the same in many stacks. */
static bool chain_frames(const uint64_t *words, uint32_t depth, ffm_stack *row)
{
    for (uint32_t i = 0; i < depth && i < FFM_INNER_FRAMES; i++)
        if (!chain(words[i], i, &row->inner))
            return false;
    for (uint32_t i = depth; i-- > FFM_INNER_FRAMES;)
        if (!chain(words[i], i, &row->outer))
            return false;
    return true;
}

static bool chain_python_frames(uint32_t count, ffm_stack *row)
{
    for (uint32_t i = 0; i < count && i < FFM_INNER_FRAMES; i++)
        if (!chain_python(i, &row->python_inner))
            return false;
    for (uint32_t i = count; i-- > FFM_INNER_FRAMES;)
        if (!chain_python(i, &row->python_outer))
            return false;
    return true;
}

bool ffm_stack_record(ffm_interned *stack, const uint64_t *words, bool truncated)
{
    ffm_stack row = {.number = stack->number, .truncated = truncated};
    if (!chain_frames(words, stack->depth, &row) || !chain_python_frames(stack->python_words / FFM_PYTHON_WORDS, &row))
        return false;
    memcpy(row.key, stack->key, FFM_KEY_BYTES);
    stack->inner = row.inner;
    stack->outer = row.outer;
    record(&recording.stacks, FFM_CHUNK_STACKS, &row, sizeof row);
    return true;
}

uint32_t ffm_stack_frames_recorded(void)
{
    return __atomic_load_n(&recording.frames, __ATOMIC_RELAXED);
}

uint32_t ffm_stack_frames_of(const ffm_interned *stack, uint64_t *frames, uint32_t room)
{
    const ffm_frame_tree *tree = &recording.native.tree;
    const uint32_t depth = stack->depth < room ? stack->depth : room;
    uint32_t place = stack->depth < FFM_INNER_FRAMES ? stack->depth : FFM_INNER_FRAMES;
    for (uint32_t next = stack->inner; place-- > 0; next = ffm_frame_tree_at(tree, next)->next)
        if (place < depth)
            frames[place] = ffm_frame_tree_at(tree, next)->value;
    uint32_t next = stack->outer;
    for (place = FFM_INNER_FRAMES; place < depth; place++) {
        frames[place] = ffm_frame_tree_at(tree, next)->value;
        next = ffm_frame_tree_at(tree, next)->next;
    }
    return depth;
}

static void forget(chains *all)
{
    ffm_sink_release(&all->stream);
    all->stream = (ffm_stream){0};
    ffm_frame_tree_clear(&all->tree);
}

void ffm_described_after_fork(void)
{
    ffm_sink_release(&recording.stacks);
    recording.stacks = (ffm_stream){0};
    forget(&recording.native);
    forget(&recording.python);
    recording.frames = 0;
}
