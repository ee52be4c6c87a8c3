/* The files mapped into the program, as far as they have occurred in stacks. */
#ifndef FFM_MODULES_H
#define FFM_MODULES_H

#include "records.h"

typedef struct {
    uint32_t number; /* FFM_NO_MODULE for an address outside every file */
    uint64_t base;
    uint8_t build_id[FFM_BUILD_ID_BYTES];
} ffm_module_place;

/* Find the module of an address; a new module is recorded. Takes the loader's lock, so not for the hot path. */
ffm_module_place ffm_module_of(uint64_t address);

/* A module was unloaded: another may be at its addresses. */
void ffm_modules_forget(void);

/* Changes whenever addresses may have changed their meaning. */
uint32_t ffm_modules_generation(void);

/* In a forked child: record the modules again. */
void ffm_modules_after_fork(void);

#endif
