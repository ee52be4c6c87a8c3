/* Ordinary memory of the program, which some GPUs use by its address (heterogeneous memory management). */
#ifndef FFM_REMEDY_ORDINARY_MEMORY_H
#define FFM_REMEDY_ORDINARY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether some aligned word in the bytes can be the address of ordinary memory, and a GPU uses such memory. */
bool ffm_ordinary_memory_named_in(const void *memory, size_t bytes);

#endif
