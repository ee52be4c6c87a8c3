/* What the end of a wait does to the ranges: it arms those whose work it may have covered. */
#ifndef FFM_ARMING_H
#define FFM_ARMING_H

#include <stdint.h>

#include "thread.h"
#include "waits.h"

/* A wait of the thread, which covers certain work, has ended. `site` is the stack of its call; 0 if it is private. */
void ffm_arming_wait_ended(const ffm_cover *cover, const ffm_thread *thread, uint32_t site);

/* How many waits have ended that were the first for some range. Under the lock of the ranges. */
uint64_t ffm_arming_turns(void);

#endif
