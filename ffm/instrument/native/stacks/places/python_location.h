/* Where in its source file a Python instruction is. */
#ifndef FFM_PYTHON_LOCATION_H
#define FFM_PYTHON_LOCATION_H

#include <stdint.h>

typedef struct {
    uint32_t line;
    uint32_t column; /* the first one, from 1; 0 if there is none */
} ffm_python_location;

/* The location of an instruction of a function, whose location table lies from `table` to `end`. `instruction` is
 * counted from the function's first one in code units, which have two bytes. */
ffm_python_location ffm_python_location_of(uint64_t instruction, uint32_t first_line, const uint8_t *table,
                                           const uint8_t *end);

#endif
