/* The files mapped into the program, as far as stacks have met them. */
#ifndef FFM_MODULES_H
#define FFM_MODULES_H

#include "records.h"

typedef struct {
    uint32_t number; /* FFM_NO_MODULE for an address outside of every file */
    uint64_t base;
    uint8_t build_id[FFM_BUILD_ID_BYTES];
} ffm_module_place;

/* Where an address lies; a module met for the first time is recorded. Takes the loader's lock: not for the hot path. */
ffm_module_place ffm_module_of(uint64_t address);

/* A module was unloaded: another may lie at its addresses. */
void ffm_modules_forget(void);

/* Changes whenever addresses may have changed their meaning. */
uint32_t ffm_modules_generation(void);

/* In a forked child: record the modules again. */
void ffm_modules_after_fork(void);

#endif
