/* Machine code of random bytes. Built with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer by fuzzing.py. */
#include <stdlib.h>
#include <string.h>

#include "machine_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void found(const ffm_kernel_code *kernel, void *context)
{
    size_t *most = context;
    uint32_t unread = 0;
    for (uint32_t place = 0; place < kernel->bytes; place++)
        unread += (kernel->read[place / 8] & 1 << place % 8) == 0;
    if (unread == 0 || strlen(kernel->name) > *most)
        abort();
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
