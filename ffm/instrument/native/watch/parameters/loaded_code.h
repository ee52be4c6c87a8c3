/* The machine code that the program has loaded: which words of their parameters its kernels do not use as addresses.
 *
 * Of code that is loaded from files, or only as PTX, nothing is known. */
#ifndef FFM_LOADED_CODE_H
#define FFM_LOADED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "parameter_values.h"

/* Provide the driver's own queries: cuFuncGetModule (CUDA 11.0) and cuKernelGetLibrary (CUDA 12.5); NULL if it has
 * none. */
void ffm_loaded_code_ask(void *module_of_function, void *library_of_kernel);

/* Before and after a call of the driver, which may unload code or load some. */
void ffm_loaded_code_before(const ffm_function *function, const uint64_t *arguments);
void ffm_loaded_code_after(const ffm_function *function, const uint64_t *arguments, uint32_t result);

/* Whether a kernel, a CUfunction or a CUkernel, cannot use a word so many bytes behind the start of its parameters as
 * an address. */
bool ffm_loaded_code_ignores(uint64_t kernel, uint64_t offset, uint64_t word);

/* Whether a kernel does not read one of a word's bytes that make an address when it is launched so. That is found out
 * for a limited number of different launches. */
bool ffm_loaded_code_leaves(uint64_t kernel, uint64_t offset, const ffm_given_values *given);

/* Whether the machine code of a kernel is known. */
bool ffm_loaded_code_knows(uint64_t kernel);

/* In a forked child, where a thread that no longer exists may have been loading. */
void ffm_loaded_code_after_fork(void);

#endif
