/* Where the instruments' own code lies, Frida's and ours. What it calls of the C library is not the program's; and it
 * calls under locks of its own, so that a hook may not wait for anything there: Frida maps memory for its heap under
 * the heap's lock, which another thread may want while it holds the dynamic linker's, which an unwinder wants. */
#ifndef FFM_INSTRUMENTS_H
#define FFM_INSTRUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Code lies in [start, start + bytes). Told again, it is noted once. */
void ffm_instruments_note(uint64_t start, uint64_t bytes);

/* Whether an address is one of their code. Takes no lock. */
bool ffm_instruments_hold(uint64_t address);

#endif
