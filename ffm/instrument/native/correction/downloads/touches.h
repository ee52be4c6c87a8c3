/* Everything other than a call that could reveal a pending download: a touch of its pages, the program's end. */
#ifndef FFM_REMEDY_TOUCHES_H
#define FFM_REMEDY_TOUCHES_H

#include <stdbool.h>

/* Handle all of this from now on. False if this process does not allow it: then nothing may be deferred. */
bool ffm_touches_open(void);

#endif
