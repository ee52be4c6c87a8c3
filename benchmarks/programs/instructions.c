/* instructions: says what ffm takes instructions of a GPU to do, one a line of the standard input.
 *
 * A line has the architecture (10 * major + minor), the two words of the instruction, its offset in the code and the
 * code's bytes, all but the first in hexadecimal. The answer has, between semicolons: 1 if it may read any parameter;
 * where it begins to read constant bank 0, how many bytes, and 1 if so far behind a register; where it leads to, and
 * where threads meet that part there, negative if nowhere; the registers that it overwrites with something else; those
 * of whose values it makes use; and those that it passes on, each with where. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "machine_flow.h"
#include "machine_instruction.h"

enum { REGISTERS = 256, NOWHERE = 0xfffff0 };

static uint64_t *bits_of(ffm_carriers *carriers, int uniform)
{
    return uniform ? carriers->uniform : carriers->general;
}

static int has(ffm_carriers *carriers, int uniform, int number)
{
    return (int)(bits_of(carriers, uniform)[number / 64] >> number % 64 & 1);
}

static const char *const names[2] = {"R", "UR"};

/* What becomes of one register at a time. */
static void tell_registers(uint32_t architecture, const uint64_t word[2], char what)
{
    for (int uniform = 0; uniform < 2; uniform++)
        for (int number = 0; number < REGISTERS; number++) {
            ffm_carriers carriers = {{0}, {0}};
            bits_of(&carriers, uniform)[number / 64] = 1ULL << number % 64;
            const int used = ffm_instruction_uses(architecture, word, NOWHERE, &carriers);
            if (what == 'u' ? used : what == 'o' && !used && !has(&carriers, uniform, number))
                printf(" %s%d", names[uniform], number);
            for (int to = 0; to < 2 * REGISTERS && what == 'p' && !used; to++)
                if (has(&carriers, to / REGISTERS, to % REGISTERS) && to != uniform * REGISTERS + number)
                    printf(" %s%d>%s%d", names[uniform], number, names[to / REGISTERS], to % REGISTERS);
        }
}

int main(void)
{
    char line[256];
    uint32_t architecture;
    uint64_t word[2], offset, bytes;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "%" SCNu32 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &architecture, &word[0], &word[1],
                   &offset, &bytes) != 5)
            return 1;
        const ffm_bank_read reads = ffm_instruction_reads(architecture, word, offset, bytes);
        printf("%d;%u %u %d;%" PRId64 " %" PRId64, reads.all, reads.begin, reads.bytes, reads.indexed,
               ffm_branch_target(architecture, word, offset, bytes), ffm_meeting_target(word, offset, bytes));
        for (const char *what = "oup"; *what != 0; what++) {
            putchar(';');
            tell_registers(architecture, word, *what);
        }
        putchar('\n');
    }
    return 0;
}
