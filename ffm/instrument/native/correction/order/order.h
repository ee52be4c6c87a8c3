/* The order that a removed wait promised, kept on the device.
 *
 * A program that waits for work and then enqueues more has ordered the two, on every stream. A removed wait becomes a
 * *fence*: all work enqueued after it, on any stream, starts after all work that the wait would have waited for. The
 * device keeps that order; the CPU continues. Three things that the CPU could notice need care:
 *
 * - Host memory that pending work writes or reads (effects.h): no wait is removed while the CPU could touch some.
 * - Queries about the state or the times of work: they first wait for what was promised (ffm_order_pay).
 * - Anything outside the promise (a second context, a capture): then no wait is removed.
 *
 * While there is no stream but the legacy one, a fence is *implied*: that stream does its work in the order in which it
 * was enqueued, so later work comes after earlier work without any record. An event is recorded as soon as that is not
 * enough: when another stream appears, or a call is made that may lead to streams that are not seen; when a kernel is
 * launched that need not come after the one before it; and before work that may wait for the CPU, because a query about
 * what was promised waits for all that came before the record. A query that comes behind other work that is still under
 * way would wait for too much; from then on, each fence is recorded.
 *
 * Any other fence is one event, recorded where the work is. Those streams wait for it that nothing else orders after
 * it. Work on the legacy default stream comes after all earlier work on blocking streams, including each thread's own
 * default stream, and before all later work there (CUDA Programming Guide, "Implicit Synchronization"). So most fences
 * are a single record on it. They are created at once, not at the next enqueue, because closed libraries enqueue work
 * with calls that ffm does not see. */
#ifndef FFM_REMEDY_ORDER_H
#define FFM_REMEDY_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Which work a removed wait would have waited for. */
typedef enum { FFM_SCOPE_CONTEXT, FFM_SCOPE_STREAM, FFM_SCOPE_EVENT } ffm_scope;

/* The stream that a call means by a handle; default streams are named by their explicit handles. Notes threads that use
 * their own default stream. */
uint64_t ffm_order_stream(uint64_t handle, bool per_thread);

void ffm_order_stream_made(uint64_t stream, bool nonblocking);
void ffm_order_stream_gone(uint64_t stream);

/* Call before and after a wait that took place: what it covered is over. `before` is the mark from before the wait. */
typedef struct {
    uint64_t effects, fences;
} ffm_order_mark;

ffm_order_mark ffm_order_now(void);
void ffm_order_waited(ffm_scope scope, uint64_t stream, ffm_order_mark before);

/* Keep the order of a wait that is being removed. `handle` is the stream or event of the scope. False if that is not
 * possible; the caller then waits. */
bool ffm_order_fence(ffm_scope scope, uint64_t handle);

/* Work is about to be enqueued that may wait for the CPU, or that may begin before earlier work of its stream is over.
 * What was promised so far gets its event before it. */
void ffm_order_record(void);

/* Unseen calls may enqueue work on other streams, or let work go on: from now on, each fence is recorded. */
void ffm_order_unseen(void);

/* Whether work enqueued on the stream now comes after all work enqueued before, on any stream. */
bool ffm_order_after_all(uint64_t stream);

/* Whether work enqueued on the stream now would start at once because everything before it is done. False if that
 * cannot be queried. */
bool ffm_order_begins_at_once(uint64_t stream);

/* Order blocking streams as work on the legacy stream would order them, without such work. False if the driver
 * refuses. */
bool ffm_order_barrier(void);

/* Wait now for everything that removed waits promised. */
void ffm_order_pay(void);

/* Whether removed waits promised something that has not been waited for since. */
bool ffm_order_owes(void);

/* Forget streams, effects and events: their context is gone, or this is a forked child. */
void ffm_order_forget(void);

#endif
