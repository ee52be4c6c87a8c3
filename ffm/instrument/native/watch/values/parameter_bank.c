#include "parameter_bank.h"

#include <string.h>

#include "machine_instruction.h"

static void mark(uint8_t *bits, uint32_t bit)
{
    bits[bit / 8] |= (uint8_t)(1 << bit % 8);
}

uint32_t ffm_followed_number(const ffm_given_values *given, uint32_t offset)
{
    enum { LARGEST = 1 << 20 };
    uint32_t number;
    memcpy(&number, given->bytes + offset, sizeof number);
    return number <= LARGEST ? number : UINT32_MAX;
}

/* What lies before the parameters may be the address of the bank itself. */
void ffm_bank_touch(ffm_bank_use *of, uint32_t place, uint32_t bytes)
{
    const uint32_t first = ffm_parameters_begin(of->architecture);
    if (place < first && !ffm_harmless_before_parameters(of->architecture, place))
        of->failed = true;
    for (uint32_t byte = place < first ? first : place; byte < place + bytes && byte - first < of->given->count; byte++)
        mark(of->result->read, byte - first);
}

ffm_values ffm_bank_number(ffm_bank_use *of, uint32_t place, uint32_t bytes)
{
    const uint32_t first = ffm_parameters_begin(of->architecture), offset = place - first;
    const uint32_t word = offset & ~3u, within = offset - word;
    if (place < first || word + 4 > of->given->count || within + bytes > 4)
        return ffm_any_value;
    for (uint32_t byte = word; byte < word + 4; byte++)
        if (!of->given->known[byte])
            return ffm_any_value;
    mark(of->result->matters, word / 4);
    const uint32_t number = ffm_followed_number(of->given, word);
    if (number == UINT32_MAX)
        return ffm_any_value;
    return ffm_one_value(bytes == 4 ? number : number >> 8 * within & ((1u << 8 * bytes) - 1));
}

void ffm_bank_touch_indexed(ffm_bank_use *of, ffm_values index, uint32_t place, uint32_t bytes)
{
    if (place > INT16_MAX || index.high > UINT16_MAX) { /* any */
        memset(of->result->read, 0xff, sizeof of->result->read);
        return;
    }
    for (uint32_t number = index.low; number <= index.high; number += index.step)
        ffm_bank_touch(of, place + number, bytes);
}
