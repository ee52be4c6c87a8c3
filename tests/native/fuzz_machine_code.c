/* Machine code of random bytes. Built with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer by fuzzing.py. */
#include <stdlib.h>
#include <string.h>

#include "machine_code.h"
#include "machine_instruction.h"
#include "parameter_flow.h"
#include "parameter_values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void found(const ffm_kernel_code *kernel, void *context)
{
    const size_t *most = context;
    if (strlen(kernel->name) > *most || kernel->text_bytes > *most)
        abort();
    ffm_may_be_address(kernel->architecture, kernel->text, kernel->text_bytes,
                       ffm_parameters_begin(kernel->architecture), kernel->asserts);
    static ffm_given_values given = {.count = FFM_PARAMETERS_FOLLOWED, .blocks = {3, 2, 1}};
    memset(given.known, true, sizeof given.known);
    ffm_values_read read;
    ffm_parameter_values(kernel->architecture, kernel->text, kernel->text_bytes, &given, &read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *code = malloc(size); /* so that a read beyond it is seen */
    if (size == 0 || code == NULL) {
        free(code);
        return 0;
    }
    memcpy(code, data, size);
    ffm_machine_code_kernels(code, size, found, &size);
    free(code);
    return 0;
}
