/* The reader of a loaded file's notes on random bytes. Built with libFuzzer, AddressSanitizer and
 * UndefinedBehaviorSanitizer by fuzzing.py. */
#include <stdlib.h>
#include <string.h>

#include "notes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *notes = malloc(size + 1); /* at an odd address, and no more, so that a read beyond it is seen */
    uint8_t build_id[FFM_BUILD_ID_BYTES] = {0};
    if (notes == NULL)
        return 0;
    if (size != 0)
        memcpy(notes + 1, data, size);
    const uint32_t bytes = ffm_notes_build_id(notes + 1, size, build_id);
    if (bytes > FFM_BUILD_ID_BYTES || (bytes != 0 && memmem(notes + 1, size, build_id, bytes) == NULL))
        abort();
    free(notes);
    return 0;
}
