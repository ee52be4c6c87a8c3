/* What runs in place of each driver function, grouped by the file that decides. */
#ifndef FFM_REMEDY_CALL_HANDLERS_H
#define FFM_REMEDY_CALL_HANDLERS_H

#include "program_call.h"

/* Runs in place of a driver function; returns its CUresult. */
typedef uint64_t (*ffm_handler)(const ffm_program_call *call);

/* NULL for functions that are not the file's. */
ffm_handler ffm_memory_handler(const ffm_function *function);
ffm_handler ffm_waits_handler(const ffm_function *function);
ffm_handler ffm_objects_handler(const ffm_function *function);
ffm_handler ffm_work_handler(const ffm_function *function);

#endif
