/* Whether a process can ever use a GPU. */
#ifndef FFM_GATE_LOADING_H
#define FFM_GATE_LOADING_H

#include <stdbool.h>

/* Whether some module of this process is a driver, or may load one: it asks the dynamic linker for modules or functions
 * while it runs. Called before the program runs code of its own. What the C library loads for itself, such as name
 * services, does not count. */
bool ffm_gate_may_load(void);

#endif
