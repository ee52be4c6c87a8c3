/* The functions of the C library by which a thread takes signals that it blocks. */
#ifndef FFM_SIGNAL_WAITS_H
#define FFM_SIGNAL_WAITS_H

#include "followed.h"

extern ffm_followed ffm_signal_waits[];

#endif
