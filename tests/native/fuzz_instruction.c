/* The decoder of instructions and the emulation on random bytes. Built with libFuzzer, AddressSanitizer and
 * UndefinedBehaviorSanitizer by fuzzing.py. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "emulation.h"
#include "instruction.h"

enum { LONGEST = FFM_INSTRUCTION_LONGEST, WIDEST = 64 }; /* bytes of an instruction, and of what is emulated */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *code = calloc(1, FFM_INSTRUCTION_ROOM); /* no more, so that a read beyond it is seen */
    if (code == NULL)
        return 0;
    if (size != 0)
        memcpy(code, data, size < LONGEST ? size : LONGEST);
    const uint32_t bytes = ffm_instruction_bytes(code);
    if (ffm_instruction_places(code) > FFM_PLACES_MANY)
        abort();
    ucontext_t context = {0};
    ffm_decoded found = {0};
    context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)code;
    if (ffm_decode(&context, &found) &&
        (found.bytes > bytes || found.bytes == 0 || found.bytes > WIDEST || found.length < 2 || found.length > LONGEST))
        abort();
    free(code);
    return 0;
}
