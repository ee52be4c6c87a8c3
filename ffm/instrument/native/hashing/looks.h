/* Whether to look at what the destination of a transfer holds, before bytes are sent there.
 *
 * Reading back or hashing a destination costs as much as the transfer. A call site does it until it was useless several
 * times in a row, and whenever it sends the bytes again that were last sent to the same destination. Once it has found
 * the same several times in a row, it does it ever less often. */
#ifndef FFM_LOOKS_H
#define FFM_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether to look at the destination of a call site's next transfer. `again`: it is an upload of the bytes that were
 * sent there last. Each answer counts. */
bool ffm_look_pays(uint32_t site, bool again);

/* Note whether a look has found the bytes that are sent. */
void ffm_look_found(uint32_t site, bool equal);

/* Whether there was a look, and whether the last one found other bytes. */
bool ffm_looked(uint32_t site);
bool ffm_look_found_others(uint32_t site);

#endif
