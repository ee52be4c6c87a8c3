/* Whether code runs in a signal handler. */
#ifndef FFM_IN_HANDLER_H
#define FFM_IN_HANDLER_H

#include <stdbool.h>

/* Whether the calling thread is in a signal handler, as far as its stack can be unwound. Safe in signal handlers. */
bool ffm_in_handler(void);

#endif
