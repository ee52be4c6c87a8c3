/* What transfers carry: hashes of the bytes, for telling repeated transfers (dissertation 4.3.2;
 * docs/architecture.md#transfers). */
#ifndef FFM_CONTENTS_H
#define FFM_CONTENTS_H

#include "catalogue.h"
#include "thread.h"

/* Before a call: hash what an upload sends, and what destinations contain. Note in a launch what its parameters lead
 * to, and in a call that loads code whether that has variables. */
void ffm_contents_before(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation,
                         ffm_thread *thread);

/* After a call: hash the downloads that it has waited for. */
void ffm_contents_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                        uint64_t number, ffm_thread *thread);

/* Memory is about to be freed, moved or protected: what was to arrive there cannot be read any more. */
void ffm_contents_gone(uint64_t start, uint64_t end);

/* A measured stretch ends: what has not arrived is not looked at. */
void ffm_contents_stop(void);

/* In a forked child: the parent's downloads do not arrive here. */
void ffm_contents_after_fork(void);

#endif
