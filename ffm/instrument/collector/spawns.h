/* Programs that the C library starts: what they are given is read in the child, where it is not seen. The functions are
 * replaced, as those of clocks.h. */
#ifndef FFM_SPAWNS_H
#define FFM_SPAWNS_H

#include <stdint.h>

const char *ffm_spawns_name(uint32_t place);
void *ffm_spawns_wrapper(uint32_t place);
void ffm_spawns_bind(uint32_t place, void *original);

#endif
