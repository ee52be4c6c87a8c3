/* What a removed wait promised, kept on the device.
 *
 * A program that waits for work and then enqueues more has ordered the two, on every stream. A wait that is removed
 * becomes a *fence*: all work enqueued after it, on whatever stream, starts after all work that the wait would have
 * waited for. The device keeps that order; the CPU goes on. Three things that the CPU could notice are looked after:
 *
 * - host memory that work under way writes or reads (effects.h): while the CPU could touch some, no wait is removed;
 * - questions about the state or the times of work: they wait first, for what was promised (ffm_order_pay);
 * - what lies outside of the promise (a second context, a capture): no wait is removed then.
 *
 * A fence is one event, recorded where the work is, and waited for by the streams that nothing else orders after it.
 * Work on the legacy default stream comes after all earlier work on blocking streams, each thread's own default stream
 * included, and before all later work there (CUDA Programming Guide, "Implicit Synchronization"), so that most fences
 * are one record on it. They are made at once, not at the next enqueue: closed libraries enqueue by calls that nobody
 * sees. */
#ifndef FFM_REMEDY_ORDER_H
#define FFM_REMEDY_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Which work a removed wait would have waited for. */
typedef enum { FFM_SCOPE_CONTEXT, FFM_SCOPE_STREAM, FFM_SCOPE_EVENT } ffm_scope;

/* The stream that a call means by a handle: default streams by their explicit handles. Notes threads that use their
 * own default stream. */
uint64_t ffm_order_stream(uint64_t handle, bool per_thread);

void ffm_order_stream_made(uint64_t stream, bool nonblocking);
void ffm_order_stream_gone(uint64_t stream);

/* Under ffm_lock. Whether the stream is a default one, or was made in the program's sight. */
bool ffm_order_knows(uint64_t stream);

/* Under ffm_lock. Whether what the calling thread asks for by this handle is the only stream that has it: another
 * thread's own default stream is another stream. */
bool ffm_order_may_ask(uint64_t stream);

/* Before and after a wait that took place: what it covered is over. `before` is from before the wait. */
typedef struct {
    uint64_t effects, fences;
} ffm_order_mark;

ffm_order_mark ffm_order_now(void);
void ffm_order_waited(ffm_scope scope, uint64_t stream, ffm_order_mark before);

/* Keep the order of a wait that is removed now. `handle`: the stream or event of the scope. False where that is not
 * possible; the caller then waits. */
bool ffm_order_fence(ffm_scope scope, uint64_t handle);

/* Whether work enqueued on the stream now comes after all work enqueued before, whatever its stream. */
bool ffm_order_after_all(uint64_t stream);

/* Whether work enqueued on the stream now would begin at once: all that it comes after is done. False where that cannot
 * be asked. */
bool ffm_order_begins_at_once(uint64_t stream);

/* Put blocking streams in the order that work on the legacy stream would put them in, without such work. False where
 * the driver refuses. */
bool ffm_order_barrier(void);

/* Wait now for all that removed waits promised. */
void ffm_order_pay(void);

/* Whether removed waits promised something that was not waited for since. */
bool ffm_order_owes(void);

/* Forget streams, effects and events: their context is gone, or this is a forked child. */
void ffm_order_forget(void);

#endif
