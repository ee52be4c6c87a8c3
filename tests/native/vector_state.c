/* Whether hashing leaves the upper halves of vector registers in use, which slows the program's own code down. */
#include <stdint.h>

#include "hashes.h"

enum { AVX_STATE = 1 << 2 }; /* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 13.6 */

int upper_halves_in_use_after(const ffm_box *box)
{
    uint32_t low, high;
    __asm__ volatile("vzeroupper" ::: "memory");
    ffm_hash_box(box, 0, 0);
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low & AVX_STATE) != 0;
}
