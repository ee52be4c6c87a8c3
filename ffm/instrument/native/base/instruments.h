/* Where the instruments' own code is, Frida's and ours. Their calls of the C library are not the program's. They make
 * these calls while holding their own locks, so a hook must not wait for anything there: Frida maps memory for its heap
 * under the heap's lock, which another thread may want while it holds the dynamic linker's lock, which an unwinder
 * wants. */
#ifndef FFM_INSTRUMENTS_H
#define FFM_INSTRUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* There is code in [start, start + bytes). Repeated notes count once. */
void ffm_instruments_note(uint64_t start, uint64_t bytes);

/* Whether an address is in their code. Takes no lock. */
bool ffm_instruments_hold(uint64_t address);

#endif
