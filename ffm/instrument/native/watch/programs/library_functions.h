/* Functions of the C library that are known to use or release memory: free, and those that start programs, because
 * their arguments are read in the child, which the trace does not follow. */
#ifndef FFM_LIBRARY_FUNCTIONS_H
#define FFM_LIBRARY_FUNCTIONS_H

#include "followed.h"

extern ffm_followed ffm_library_functions[];

/* Have blocks watched that the program's allocator never gets (own_pages.h). */
void ffm_library_functions_open(void);

#endif
