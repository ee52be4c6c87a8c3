/* The location tables of code objects since CPython 3.11 (Objects/locations.md, InternalDocs/code_objects.md). */
#include "python_location.h"

#include <stdbool.h>

/* Kinds of entries: those below SHORT_END have columns alone, and those below ONE_LINE_END are on this line or one of
 * the next two. */
enum { SHORT_END = 10, ONE_LINE_END = 13, NO_COLUMNS = 13, LONG = 14 };

static uint32_t read_varint(const uint8_t **at, const uint8_t *end)
{
    uint32_t value = 0;
    bool more = true;
    for (uint32_t shift = 0; more && *at < end && shift < 32; shift += 6) {
        const uint8_t byte = *(*at)++;
        value |= (uint32_t)(byte & 0x3F) << shift;
        more = byte & 0x40;
    }
    return value;
}

static int32_t read_signed_varint(const uint8_t **at, const uint8_t *end)
{
    const uint32_t value = read_varint(at, end);
    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

ffm_python_location ffm_python_location_of(uint64_t instruction, uint32_t first_line, const uint8_t *table,
                                           const uint8_t *end)
{
    uint32_t line = first_line;
    uint64_t covered = 0; /* instructions, by the entries so far */
    while (table < end) {
        const uint32_t kind = *table >> 3 & 15;
        covered += (*table++ & 7u) + 1;
        uint32_t column = 0;
        bool known = true;
        if (kind < SHORT_END) {
            column = kind * 8 + (*table++ >> 4 & 7) + 1;
        } else if (kind < ONE_LINE_END) {
            line += kind - SHORT_END;
            column = *table + 1u;
            table += 2;
        } else if (kind == NO_COLUMNS) {
            line += (uint32_t)read_signed_varint(&table, end);
        } else if (kind == LONG) {
            line += (uint32_t)read_signed_varint(&table, end);
            read_varint(&table, end);
            column = read_varint(&table, end);
            read_varint(&table, end);
        } else {
            known = false;
        }
        if (covered > instruction)
            return known ? (ffm_python_location){line, column} : (ffm_python_location){first_line, 0};
    }
    return (ffm_python_location){first_line, 0};
}
