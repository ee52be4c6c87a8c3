/* Containers of random bytes. Built with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer by fuzzing.py. */
#include <stdlib.h>
#include <string.h>

#include "containers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 16, MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *container = malloc(size); /* so that a read beyond it is seen */
    if (size < HEADER || container == NULL) {
        free(container);
        return 0;
    }
    memcpy(container, data, size);
    ffm_contained_code code;
    ffm_container_bytes(container);
    ffm_container_within(container, 1);
    for (size_t place = 0; ffm_container_next(container, size, &place, &code);) {
        uint8_t *plain = code.plain > MOST ? NULL : malloc(code.plain);
        if (plain != NULL)
            ffm_container_unpack(&code, plain);
        free(plain);
    }
    free(container);
    return 0;
}
