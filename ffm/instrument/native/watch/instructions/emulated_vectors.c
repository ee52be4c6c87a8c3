#include "emulated_vectors.h"

#include <string.h>

enum { CARRY = 1, PARITY = 4, ADJUST = 16, ZERO = 64, SIGN = 128, OVERFLOW = 2048 };

/* The CPU itself computes, with the rounding of the interrupted code, whose control register also gets what happened.
 */
#define FLOATING(operation)                                                                                            \
    __asm__ volatile("stmxcsr %[ours]\n"                                                                               \
                     "ldmxcsr %[theirs]\n" operation " %[operand], %[lanes]\n"                                         \
                     "stmxcsr %[theirs]\n"                                                                             \
                     "ldmxcsr %[ours]"                                                                                 \
                     : [ours] "=m"(ours), [theirs] "+m"(*theirs), [lanes] "+x"(lanes)                                  \
                     : [operand] "x"(operand))

#define FLOATING_OF(name)                                                                                              \
    switch (kind) {                                                                                                    \
    case SINGLES:                                                                                                      \
        FLOATING(name "ps");                                                                                           \
        break;                                                                                                         \
    case DOUBLES:                                                                                                      \
        FLOATING(name "pd");                                                                                           \
        break;                                                                                                         \
    case SINGLE:                                                                                                       \
        FLOATING(name "ss");                                                                                           \
        break;                                                                                                         \
    default:                                                                                                           \
        FLOATING(name "sd");                                                                                           \
        break;                                                                                                         \
    }

typedef float four_singles __attribute__((vector_size(16)));

static four_singles operated(const ffm_decoded *instruction, four_singles lanes, four_singles operand, uint32_t *theirs)
{
    enum { SINGLE, DOUBLE, SINGLES, DOUBLES };
    const int kind = (instruction->packed ? SINGLES : SINGLE) + instruction->doubles;
    uint32_t ours;
    switch (instruction->code) {
    case 0x51:
        FLOATING_OF("sqrt")
        break;
    case 0x58:
        FLOATING_OF("add")
        break;
    case 0x59:
        FLOATING_OF("mul")
        break;
    case 0x5C:
        FLOATING_OF("sub")
        break;
    case 0x5D:
        FLOATING_OF("min")
        break;
    case 0x5E:
        FLOATING_OF("div")
        break;
    default:
        FLOATING_OF("max")
        break;
    }
    return lanes;
}

/* The flags of a comparison are in AH; it clears the overflow flag. */
#define COMPARISON(operation)                                                                                          \
    __asm__ volatile("stmxcsr %[ours]\n"                                                                               \
                     "ldmxcsr %[theirs]\n" operation " %[operand], %[lanes]\n"                                         \
                     "lahf\n"                                                                                          \
                     "stmxcsr %[theirs]\n"                                                                             \
                     "ldmxcsr %[ours]"                                                                                 \
                     : [ours] "=m"(ours), [theirs] "+m"(*theirs), "=a"(flags)                                          \
                     : [lanes] "x"(lanes), [operand] "x"(operand))

static greg_t compared(const ffm_decoded *instruction, four_singles lanes, four_singles operand, uint32_t *theirs)
{
    uint32_t ours;
    greg_t flags;
    if (instruction->code == 0x2E && instruction->doubles)
        COMPARISON("ucomisd");
    else if (instruction->code == 0x2E)
        COMPARISON("ucomiss");
    else if (instruction->doubles)
        COMPARISON("comisd");
    else
        COMPARISON("comiss");
    return (flags >> 8) & (CARRY | PARITY | ADJUST | ZERO | SIGN);
}

void ffm_emulation_compute_vector(const ffm_decoded *instruction, ucontext_t *context)
{
    void *place = &context->uc_mcontext.fpregs->_xmm[instruction->number & 15];
    greg_t *flags = &context->uc_mcontext.gregs[REG_EFL];
    four_singles lanes, operand = {0};
    uint32_t control = context->uc_mcontext.fpregs->mxcsr;
    memcpy(&lanes, place, sizeof lanes);
    memcpy(&operand, (const void *)instruction->address, instruction->bytes);
    if (instruction->code == 0x2E || instruction->code == 0x2F) {
        *flags = (*flags & ~(greg_t)(CARRY | PARITY | ADJUST | ZERO | SIGN | OVERFLOW)) |
                 compared(instruction, lanes, operand, &control);
    } else {
        lanes = operated(instruction, lanes, operand, &control);
        memcpy(place, &lanes, sizeof lanes);
    }
    context->uc_mcontext.fpregs->mxcsr = control;
}
