/* Guards over the functions of the C library that use or change memory, while downloads are pending. */
#ifndef FFM_REMEDY_GUARDS_H
#define FFM_REMEDY_GUARDS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the guards are in place. */
bool ffm_guards_complete(void);

/* Replacement code for a function of the C library, by its index in guarded_functions.def; NULL beyond. */
void *ffm_guard_wrapper(uint32_t guard);
void ffm_guard_bind(uint32_t guard, const void *address, void *original);
bool ffm_guard_is_bound(const void *address);

#endif
