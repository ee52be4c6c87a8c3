#include "late_readback.h"

#include <pthread.h>
#include <stddef.h>

#include "bindings.h"
#include "captures.h"
#include "contexts.h"
#include "hashes.h"

/* Larger ones are compared in pieces while the program waits: most differ in the first one. */
enum { LARGEST = 256 << 10, ROOM = 8 << 20, AT_ONCE = 1 << 10, CONTEXTS = 8, ALIGNED = 64 };

typedef uint64_t event;
typedef int (*allocate_function)(void **, size_t);
typedef int (*download_function)(uint64_t, uint64_t, uint64_t, uint64_t);
typedef int (*create_function)(event *, uint64_t);
typedef int (*record_function)(event, uint64_t);
typedef int (*query_function)(event);

/* BEGUN: the thread that enqueues has it. SAID: it was told of before it was read. */
typedef enum { BEGUN, ENQUEUED, SAID, OVER } state;

typedef struct {
    ffm_late_upload upload;
    event passed;         /* behind the copy */
    uint64_t offset, end; /* of its bytes in the room; never wraps */
    state state;
} reading;

/* One per context, whose pinned memory and events they are. From `first` to `next` are under way. */
typedef struct {
    char *room;
    uint64_t begin, end; /* of what is used in the room, counted on from lap to lap */
    uint64_t first, next;
    bool closed; /* it could not be opened, or the context may have ended */
    reading readings[AT_ONCE];
} pool;

static struct {
    pthread_mutex_t lock; /* not held while work is enqueued */
    uint32_t under_way;
    pool pools[CONTEXTS];
} late = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool open(pool *here)
{
    if (here->room != NULL || here->closed)
        return !here->closed;
    const allocate_function allocate = (allocate_function)ffm_own_call(FFM_OWN_CALL_ALLOCATE_PINNED, false);
    void *room = NULL;
    here->closed = allocate == NULL || ffm_own_call(FFM_OWN_CALL_CREATE_EVENT, false) == NULL ||
                   ffm_own_call(FFM_OWN_CALL_RECORD_EVENT, false) == NULL ||
                   ffm_own_call(FFM_OWN_CALL_QUERY_EVENT, false) == NULL || allocate(&room, ROOM) != 0;
    here->room = room;
    return !here->closed;
}

static event event_of(reading *one)
{
    const create_function create = (create_function)ffm_own_call(FFM_OWN_CALL_CREATE_EVENT, false);
    if (one->passed == 0 && create(&one->passed, 0) != 0)
        one->passed = 0;
    return one->passed;
}

/* Room for some bytes; NULL if there is none. Locked. */
static reading *place_for(pool *here, uint64_t bytes)
{
    const uint64_t rounded = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED, behind = ROOM - here->end % ROOM;
    const uint64_t start = here->end + (rounded <= behind ? 0 : behind);
    reading *one = &here->readings[here->next % AT_ONCE];
    if (here->next - here->first == AT_ONCE || start + rounded - here->begin > ROOM || event_of(one) == 0)
        return NULL;
    one->offset = start % ROOM;
    one->end = here->end = start + rounded;
    one->state = BEGUN;
    here->next++;
    __atomic_add_fetch(&late.under_way, 1, __ATOMIC_RELAXED);
    return one;
}

static bool enqueue(const pool *here, const reading *one, const ffm_function *function, uint64_t from, uint64_t stream)
{
    const bool per_thread = function->per_thread_stream;
    const download_function download = (download_function)ffm_own_call(FFM_OWN_CALL_DOWNLOAD_LATER, per_thread);
    const record_function record = (record_function)ffm_own_call(FFM_OWN_CALL_RECORD_EVENT, per_thread);
    const uint64_t to = (uint64_t)here->room + one->offset;
    return download != NULL && download(to, from, one->upload.content.bytes, stream) == 0 &&
           record(one->passed, stream) == 0;
}

bool ffm_late_readback_begin(const ffm_function *function, const ffm_operation *operation, const ffm_copy *copy,
                             const ffm_late_upload *upload)
{
    const uint32_t context = ffm_context_number();
    const uint64_t from = copy->destination.address;
    if (!function->asynchronous || upload->content.bytes > LARGEST || from == 0 || context >= CONTEXTS ||
        ffm_capturing())
        return false;
    pool *here = &late.pools[context];
    pthread_mutex_lock(&late.lock);
    reading *one = open(here) ? place_for(here, upload->content.bytes) : NULL;
    pthread_mutex_unlock(&late.lock);
    if (one == NULL)
        return false;
    one->upload = *upload;
    const bool enqueued = enqueue(here, one, function, from, operation->stream);
    pthread_mutex_lock(&late.lock);
    one->state = enqueued ? ENQUEUED : OVER;
    here->closed |= !enqueued; /* something may still arrive there */
    pthread_mutex_unlock(&late.lock);
    return enqueued;
}

static void tell(const pool *here, const reading *one, ffm_thread *thread, ffm_late_told told)
{
    const uint64_t bytes = one->upload.content.bytes;
    const ffm_box there = {(uint64_t)here->room + one->offset, bytes, bytes, 1, bytes, 1, true};
    const ffm_hash sent = {one->upload.content.hash[0], one->upload.content.hash[1]},
                   held = ffm_hash_box(&there, NULL, NULL);
    told(thread, &one->upload, true, ffm_hash_equal(&held, &sent));
}

/* Locked. */
static void leave(pool *here)
{
    for (; here->first < here->next && here->readings[here->first % AT_ONCE].state == OVER; here->first++) {
        here->begin = here->readings[here->first % AT_ONCE].end;
        __atomic_sub_fetch(&late.under_way, 1, __ATOMIC_RELAXED);
    }
}

/* Asking costs time for each: the first that has not been read yet ends it, and the others are told of later. Locked.
 */
static void tell_of(pool *here, ffm_thread *thread, ffm_late_told told)
{
    const query_function query = (query_function)ffm_own_call(FFM_OWN_CALL_QUERY_EVENT, false);
    for (uint64_t place = here->first; place < here->next; place++) {
        reading *one = &here->readings[place % AT_ONCE];
        if (one->state == BEGUN || (one->state != OVER && query(one->passed) != 0))
            break;
        if (one->state == ENQUEUED)
            tell(here, one, thread, told);
        one->state = OVER;
    }
    leave(here);
}

void ffm_late_readback_tell(ffm_thread *thread, ffm_late_told told)
{
    if (__atomic_load_n(&late.under_way, __ATOMIC_RELAXED) == 0 || ffm_capturing())
        return;
    pthread_mutex_lock(&late.lock);
    for (uint32_t context = 0; context < CONTEXTS; context++)
        if (!late.pools[context].closed)
            tell_of(&late.pools[context], thread, told);
    pthread_mutex_unlock(&late.lock);
}

void ffm_late_readback_give_up(ffm_thread *thread, ffm_late_told told, bool context_ends)
{
    pthread_mutex_lock(&late.lock);
    for (uint32_t context = 0; context < CONTEXTS; context++) {
        pool *here = &late.pools[context];
        for (uint64_t place = here->first; place < here->next; place++) {
            reading *one = &here->readings[place % AT_ONCE];
            if (one->state == ENQUEUED) {
                told(thread, &one->upload, false, false);
                one->state = SAID;
            }
        }
        here->closed |= context_ends && here->room != NULL; /* which context's memory it is, is not known */
    }
    pthread_mutex_unlock(&late.lock);
}

void ffm_late_readback_after_fork(void)
{
    pthread_mutex_init(&late.lock, NULL);
    late.under_way = 0;
    for (uint32_t context = 0; context < CONTEXTS; context++)
        late.pools[context].closed |= late.pools[context].room != NULL;
}
