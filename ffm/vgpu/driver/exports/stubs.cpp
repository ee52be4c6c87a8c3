/* The exports. Each tests a flag, then jumps through a table slot to its implementation.
 *
 * NVIDIA's builds look the same (seen in 535.261.03). The table is in .data, and the loader fills it
 * (R_X86_64_RELATIVE), so no direct call leads from an export to its implementation. The flag says that the driver
 * cannot be used: in a child forked after cuInit, the stub itself returns CUDA_ERROR_NOT_INITIALIZED (3). */
#include "foundation/driver_state.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

#define STUB(symbol)                                                                                                   \
    asm(".pushsection .data.driver_slots, \"aw\", @progbits\n"                                                         \
        ".p2align 3\n"                                                                                                 \
        "slot_" #symbol ":\n"                                                                                          \
        ".quad implementation_" #symbol "\n"                                                                           \
        ".popsection\n"                                                                                                \
        ".pushsection .text\n"                                                                                         \
        ".p2align 5\n"                                                                                                 \
        ".globl " #symbol "\n"                                                                                         \
        ".type " #symbol ", @function\n" #symbol ":\n"                                                                 \
        ".cfi_startproc\n"                                                                                             \
        "cmpl $" TEXT(VGPU_UNUSABLE) ", vgpu_state(%rip)\n"                                                            \
                                     "je 1f\n"                                                                         \
                                     "jmp *slot_" #symbol "(%rip)\n"                                                   \
                                     ".p2align 3\n"                                                                    \
                                     "1: movl $3, %eax\n"                                                              \
                                     "ret\n"                                                                           \
                                     ".cfi_endproc\n"                                                                  \
                                     ".size " #symbol ", . - " #symbol "\n"                                            \
                                     ".popsection\n");

#define ENTRY(symbol, name, version, flavour) STUB(symbol)
#include "exports.def"
