/* Whatever could tell that a download is late, other than a call: a touch of its pages, the program's end. */
#ifndef FFM_REMEDY_TOUCHES_H
#define FFM_REMEDY_TOUCHES_H

#include <stdbool.h>

/* Look after all of it from now on. False where that cannot be done in this process: then nothing may be late. */
bool ffm_touches_open(void);

#endif
