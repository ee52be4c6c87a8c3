/* The machine code that the program has loaded: which words of their parameters its kernels do not use as addresses.
 *
 * Nothing is known of code that is loaded from files, or only as PTX. */
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

/* Whether a kernel (a CUfunction or a CUkernel) cannot use the word at an offset from the start of its parameters as an
 * address: by its machine code, or by the files that it is in (unread.h). */
bool ffm_loaded_code_ignores(uint64_t kernel, uint64_t offset, uint64_t word);

/* Whether a kernel, in such a launch, leaves one of a word's bytes unread that make an address. That is found out for a
 * limited number of different launches. */
bool ffm_loaded_code_leaves(uint64_t kernel, uint64_t offset, const ffm_given_values *given);

/* Whether that need not be asked: the kernel's code is not known, or one of its launches reads the word. */
bool ffm_loaded_code_reads(uint64_t kernel, uint64_t offset);

/* Whether a kernel uses no variables of its code, by its machine code, unless it finds their addresses. */
bool ffm_loaded_code_lacks_variables(uint64_t kernel);

/* Whether the machine code of a kernel is known. */
bool ffm_loaded_code_knows(uint64_t kernel);

/* In a forked child, where a thread that no longer exists may have been loading. */
void ffm_loaded_code_after_fork(void);

#endif
