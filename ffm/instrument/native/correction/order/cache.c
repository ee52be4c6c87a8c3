#include "cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "allowance.h"
#include "counters.h"
#include "driver.h"
#include "state.h"

enum { COPIES = 4096, BINS = 1024, GRANULE = 512, DISABLE_TIMING = 2 };

/* Indices into `copies` start at 1; 0 means none. */
typedef struct {
    ffm_content_key content;
    uint64_t address;
    uint64_t stream;  /* whose work filled it */
    ffm_handle event; /* recorded when it was filled */
    uint64_t used;    /* sequence number of its last use */
    uint32_t next;
} copy;

static struct {
    copy copies[COPIES + 1];
    uint32_t bins[BINS];
    size_t bytes;
    uint64_t uses;
} cache;

ffm_content_key ffm_content_of(const void *memory, size_t bytes)
{
    XXH128_hash_t hash = XXH3_128bits(memory, bytes);
    return (ffm_content_key){hash.low64, hash.high64, bytes};
}

static size_t rounded(size_t bytes)
{
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

static copy *find(const ffm_content_key *content)
{
    for (uint32_t place = cache.bins[content->low % BINS]; place != 0; place = cache.copies[place].next) {
        copy *at = &cache.copies[place];
        if (at->content.low == content->low && at->content.high == content->high && at->content.bytes == content->bytes)
            return at;
    }
    return NULL;
}

/* Order the stream after the work that filled a copy. One handle can mean several streams: each thread's own default
 * stream, or one created after another was destroyed. Locked. */
static bool come_after(const copy *filled, uint64_t stream, bool at_once)
{
    if (filled->stream == stream && stream == FFM_LEGACY_STREAM)
        return true;
    if (ffm_state_capturing())
        return false;
    if (ffm_driver.event_query(filled->event) == FFM_CUDA_SUCCESS)
        return true;
    bool same = filled->stream == stream && stream != FFM_PER_THREAD_STREAM;
    return (same || !at_once) && ffm_driver.stream_wait_event(stream, filled->event, 0) == FFM_CUDA_SUCCESS;
}

bool ffm_cache_copy(const ffm_content_key *content, uint64_t to, uint64_t stream, bool at_once)
{
    /* Under the lock, so that the copy is not freed before the work on it is enqueued. */
    pthread_mutex_lock(&ffm_lock);
    copy *found = find(content);
    bool done = found != NULL && come_after(found, stream, at_once) &&
                ffm_driver.copy(to, found->address, content->bytes, stream) == FFM_CUDA_SUCCESS;
    if (done)
        found->used = ++cache.uses;
    pthread_mutex_unlock(&ffm_lock);
    return done;
}

/* Remove a copy from the table and return its address. Locked. */
static uint64_t take_out(copy *gone)
{
    uint32_t place = (uint32_t)(gone - cache.copies), *link = &cache.bins[gone->content.low % BINS];
    while (*link != place)
        link = &cache.copies[*link].next;
    *link = gone->next;
    uint64_t address = gone->address;
    cache.bytes -= rounded(gone->content.bytes);
    ffm_counters->cache_bytes = cache.bytes;
    *gone = (copy){.event = gone->event};
    return address;
}

static copy *least_used(void)
{
    copy *least = NULL;
    for (uint32_t place = 1; place <= COPIES; place++) {
        copy *at = &cache.copies[place];
        if (at->address != 0 && (least == NULL || at->used < least->used))
            least = at;
    }
    return least;
}

/* Make room for this many bytes. Returns the address of a copy that must be freed by the driver, or 0 if there is room
 * or no copy can go. */
static uint64_t make_room(size_t bytes, bool at_once, bool *possible)
{
    pthread_mutex_lock(&ffm_lock);
    const size_t limit = ffm_allowance_device();
    uint64_t address = 0;
    *possible = bytes + (at_once ? cache.bytes : 0) <= limit;
    if (*possible && cache.bytes + bytes > limit)
        address = take_out(least_used());
    pthread_mutex_unlock(&ffm_lock);
    return address;
}

static copy *unused(void)
{
    for (uint32_t place = 1; place <= COPIES; place++)
        if (cache.copies[place].address == 0)
            return &cache.copies[place];
    return NULL;
}

/* Locked. */
static bool fill(const ffm_content_key *content, uint64_t address, uint64_t from, uint64_t stream)
{
    copy *fresh = find(content) != NULL ? NULL : unused();
    if (fresh == NULL ||
        (fresh->event == 0 && ffm_driver.event_create(&fresh->event, DISABLE_TIMING) != FFM_CUDA_SUCCESS) ||
        ffm_driver.copy(address, from, content->bytes, stream) != FFM_CUDA_SUCCESS ||
        ffm_driver.event_record(fresh->event, stream) != FFM_CUDA_SUCCESS)
        return false;
    uint32_t *head = &cache.bins[content->low % BINS];
    *fresh = (copy){.content = *content,
                    .address = address,
                    .stream = stream,
                    .event = fresh->event,
                    .used = ++cache.uses,
                    .next = *head};
    *head = (uint32_t)(fresh - cache.copies);
    cache.bytes += rounded(content->bytes);
    ffm_counters->cache_bytes = cache.bytes;
    return true;
}

void ffm_cache_keep(const ffm_content_key *content, uint64_t from, uint64_t stream, bool at_once)
{
    ffm_allowance_ask();
    bool possible;
    uint64_t old;
    while ((old = make_room(rounded(content->bytes), at_once, &possible)) != 0)
        ffm_driver.release(old);
    uint64_t address;
    if (!possible || ffm_driver.allocate(&address, content->bytes) != FFM_CUDA_SUCCESS)
        return;
    pthread_mutex_lock(&ffm_lock);
    bool kept = fill(content, address, from, stream);
    pthread_mutex_unlock(&ffm_lock);
    if (!kept)
        ffm_driver.release(address);
}

size_t ffm_cache_bytes(void)
{
    pthread_mutex_lock(&ffm_lock);
    size_t bytes = cache.bytes;
    pthread_mutex_unlock(&ffm_lock);
    return bytes;
}

bool ffm_cache_give_back(void)
{
    bool any = false;
    while (true) {
        pthread_mutex_lock(&ffm_lock);
        copy *least = cache.bytes > 0 ? least_used() : NULL;
        uint64_t address = least != NULL ? take_out(least) : 0;
        pthread_mutex_unlock(&ffm_lock);
        if (address == 0)
            return any;
        any = true;
        ffm_driver.release(address);
    }
}

void ffm_cache_forget(void)
{
    pthread_mutex_lock(&ffm_lock);
    for (uint32_t place = 0; place <= COPIES; place++)
        cache.copies[place] = (copy){0};
    for (uint32_t bin = 0; bin < BINS; bin++)
        cache.bins[bin] = 0;
    cache.bytes = 0;
    pthread_mutex_unlock(&ffm_lock);
}
