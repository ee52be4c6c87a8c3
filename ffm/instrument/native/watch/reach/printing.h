/* What kernels print (`printf` in device code): the driver writes it for them, in later calls. */
#ifndef FFM_PRINTING_H
#define FFM_PRINTING_H

#include <stdint.h>

#include "thread.h"

/* A driver is loaded at this address. It may not be relocated yet, so it is changed only in the next driver call. */
void ffm_printing_driver(uint64_t start);

/* At the start of a driver call: from now on, what the driver writes is seen. */
void ffm_printing_look(const ffm_thread *thread);

/* At the end of the thread's driver call with this number, which returned at `time`: record whether the driver has
 * written since the thread's call before. */
void ffm_printing_note(const ffm_thread *thread, uint64_t number, uint64_t time);

#endif
