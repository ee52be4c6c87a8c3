#include "staging.h"

#include "allowance.h"
#include "counters.h"
#include "driver.h"
#include "state.h"

enum { RINGS = 8, SLOTS = 256, ALIGNMENT = 256, DISABLE_TIMING = 2 };

static const size_t first_ring = (size_t)4 << 20;

enum { FREE, TAKEN, ENQUEUED };

/* A piece of a ring, in use until its work is done. */
typedef struct {
    size_t end; /* offset after it */
    ffm_handle event;
    int state; /* FREE, TAKEN or ENQUEUED; see ffm_staging_release */
} slot;

/* Memory that is handed out in a circle: pieces are freed in the order in which they were taken. */
typedef struct {
    char *memory;
    size_t bytes;
    size_t head, tail; /* offsets: the oldest piece starts at tail, the next one at head */
    uint32_t first, count;
    slot slots[SLOTS];
} ring;

static struct {
    ring rings[RINGS];
    uint32_t count;
    size_t bytes;
} staging;

static slot *nth(ring *of, uint32_t place)
{
    return &of->slots[(of->first + place) % SLOTS];
}

static void become(slot *one, int state)
{
    __atomic_store_n(&one->state, state, __ATOMIC_RELEASE);
}

/* Free the oldest pieces whose work is done. */
static void reclaim(ring *from)
{
    while (from->count > 0) {
        slot *oldest = nth(from, 0);
        int state = __atomic_load_n(&oldest->state, __ATOMIC_ACQUIRE);
        if (state == TAKEN || (state == ENQUEUED && ffm_driver.event_query(oldest->event) != FFM_CUDA_SUCCESS))
            return;
        from->tail = oldest->end;
        from->first = (from->first + 1) % SLOTS;
        from->count--;
    }
    from->head = from->tail = 0;
}

static bool take_from(ring *from, uint32_t number, size_t bytes, ffm_staged *piece)
{
    if (bytes > from->bytes)
        return false;
    reclaim(from);
    if (from->count == SLOTS)
        return false;
    size_t start = from->head;
    bool wrapped = from->count > 0 && from->head <= from->tail;
    if (wrapped ? from->tail - from->head < bytes : from->bytes - from->head < bytes) {
        if (wrapped || from->tail < bytes)
            return false;
        start = 0;
    }
    slot *taken = nth(from, from->count++);
    from->head = taken->end = start + bytes;
    become(taken, TAKEN);
    *piece = (ffm_staged){from->memory + start, number, (uint32_t)(taken - from->slots)};
    return true;
}

/* Add a new ring, larger than the previous ones. */
static bool add_ring(size_t bytes)
{
    size_t size = staging.count == 0 ? first_ring : staging.rings[staging.count - 1].bytes * 2;
    while (size < 2 * bytes)
        size *= 2;
    if (staging.count == RINGS || staging.bytes + size > ffm_allowance_host())
        return false;
    ring *added = &staging.rings[staging.count];
    void *memory;
    if (ffm_driver.allocate_host(&memory, size) != FFM_CUDA_SUCCESS)
        return false;
    added->memory = memory;
    added->bytes = size;
    staging.count++;
    staging.bytes += size;
    ffm_counters->staging_bytes = staging.bytes;
    return true;
}

bool ffm_staging_take(size_t bytes, ffm_staged *piece)
{
    if (bytes > ffm_allowance_host())
        return false;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    pthread_mutex_lock(&ffm_lock);
    bool found = false;
    for (uint32_t i = staging.count; i > 0 && !found; i--)
        found = take_from(&staging.rings[i - 1], i - 1, bytes, piece);
    if (!found && add_ring(bytes))
        found = take_from(&staging.rings[staging.count - 1], staging.count - 1, bytes, piece);
    pthread_mutex_unlock(&ffm_lock);
    return found;
}

bool ffm_staging_enqueued(const ffm_staged *piece, uint64_t stream)
{
    pthread_mutex_lock(&ffm_lock);
    slot *used = &staging.rings[piece->ring].slots[piece->slot];
    bool done = (used->event != 0 || ffm_driver.event_create(&used->event, DISABLE_TIMING) == FFM_CUDA_SUCCESS) &&
                ffm_driver.event_record(used->event, stream) == FFM_CUDA_SUCCESS;
    if (done)
        become(used, ENQUEUED);
    pthread_mutex_unlock(&ffm_lock);
    return done;
}

/* Without the lock, because a signal handler may release a piece. Only the state is written here; it is read under the
 * lock. */
void ffm_staging_release(const ffm_staged *piece)
{
    become(&staging.rings[piece->ring].slots[piece->slot], FREE);
}

/* Another thread may still release a piece of it. */
static void empty(ring *gone)
{
    gone->memory = NULL;
    gone->bytes = gone->head = gone->tail = 0;
    gone->first = gone->count = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        gone->slots[i].event = 0;
        become(&gone->slots[i], FREE);
    }
}

void ffm_staging_forget(void)
{
    pthread_mutex_lock(&ffm_lock);
    for (uint32_t i = 0; i < staging.count; i++)
        empty(&staging.rings[i]);
    staging.count = 0;
    staging.bytes = 0;
    pthread_mutex_unlock(&ffm_lock);
}
