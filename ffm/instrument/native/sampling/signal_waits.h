/* The functions of the C library by which a thread takes signals that it blocks. Its clock goes on while it does, and
 * the program must not get the clock's signal (stage 2). */
#ifndef FFM_SIGNAL_WAITS_H
#define FFM_SIGNAL_WAITS_H

#include "followed.h"

extern ffm_followed ffm_signal_waits[];

#endif
