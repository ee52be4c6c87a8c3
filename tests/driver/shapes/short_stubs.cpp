/* The exports as jumps of six bytes, one directly after the other: too short to be replaced. */
#define STUB(symbol)                                                                                                   \
    asm(".pushsection .data.driver_slots, \"aw\", @progbits\n"                                                         \
        ".p2align 3\n"                                                                                                 \
        "slot_" #symbol ":\n"                                                                                          \
        ".quad implementation_" #symbol "\n"                                                                           \
        ".popsection\n"                                                                                                \
        ".pushsection .text\n"                                                                                         \
        ".globl " #symbol "\n"                                                                                         \
        ".type " #symbol ", @function\n" #symbol ":\n"                                                                 \
        ".cfi_startproc\n"                                                                                             \
        "jmp *slot_" #symbol "(%rip)\n"                                                                                \
        ".cfi_endproc\n"                                                                                               \
        ".size " #symbol ", . - " #symbol "\n"                                                                         \
        ".popsection\n");

#define ENTRY(symbol, name, version, flavour) STUB(symbol)
#include "exports/exports.def"
