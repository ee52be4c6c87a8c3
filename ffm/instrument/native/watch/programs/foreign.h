/* Code whose accesses and clock reads are not the program's: the driver, the instruments. */
#ifndef FFM_FOREIGN_H
#define FFM_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

/* Note such code. */
void ffm_foreign_add(uint64_t start, uint64_t end, bool driver);

/* Whether an address is in any of it. */
bool ffm_foreign_holds(uint64_t address);

/* Whether it is in the driver's. Takes no lock. */
bool ffm_foreign_is_driver(uint64_t address);

/* Whether any of the driver's code is known. */
bool ffm_foreign_knows_driver(void);

/* Whether a stack has frames of the driver. */
bool ffm_foreign_driver_in(uint32_t stack);

/* Whether the driver started the thread of a stack, so that all that runs there runs on its behalf: outside of its
 * frames are those of libraries that start threads, and no others. */
bool ffm_foreign_driver_started(uint32_t stack);

/* Whether an address is in a library that starts threads for others. */
bool ffm_foreign_starts_threads(uint64_t address);

#endif
