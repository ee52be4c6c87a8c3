/* Functions that a loaded file calls in place of those that it imports. */
#ifndef FFM_IMPORTS_H
#define FFM_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on, the file that is loaded at an address calls what `instead` returns for the name of an import, unless
 * that is NULL. False if its imports cannot be read, or if some of them cannot be changed. */
bool ffm_imports_lead(uint64_t start, void *(*instead)(const char *name));

#endif
