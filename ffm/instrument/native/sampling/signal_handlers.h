/* Handlers of the program on an alternate signal stack are not sampled: one of 8 KiB, as runtimes of languages give to
 * threads, has no room for a second frame of the kernel beside what the handler needs (stage 2). */
#ifndef FFM_SIGNAL_HANDLERS_H
#define FFM_SIGNAL_HANDLERS_H

#include "followed.h"

extern ffm_followed ffm_signal_handlers[];

#endif
