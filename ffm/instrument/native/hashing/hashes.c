#define FFM_HASH_BOX ffm_hash_box_sse2
#include "hashes.h"
#include "hash_box.h"

/* If the upper halves of vector registers are left in use, the program's own SSE code runs at a twentieth of its speed
 * from then on, and the compiler does not clear them after every function (Intel 64 and IA-32 Architectures
 * Optimization Reference Manual, "Mixing AVX code with SSE code"). */
static ffm_hash hash_box_avx2(const ffm_box *box, const void *(*readable)(uint64_t start, uint64_t bytes),
                              void (*part)(void *context, uint64_t place, const ffm_hash *hash), void *context)
{
    const ffm_hash hash = ffm_hash_box_avx2(box, readable, part, context);
    __asm__ volatile("vzeroupper" ::: "memory");
    return hash;
}

ffm_hash ffm_hash_box_through(const ffm_box *box, const void *(*readable)(uint64_t start, uint64_t bytes),
                              void (*part)(void *context, uint64_t place, const ffm_hash *hash), void *context)
{
    /* Half the speed of memory without AVX2, nine tenths with it (benchmarks/hashing.py). */
    return __builtin_cpu_supports("avx2") ? hash_box_avx2(box, readable, part, context)
                                          : ffm_hash_box_sse2(box, readable, part, context);
}

ffm_hash ffm_hash_box(const ffm_box *box, void (*part)(void *context, uint64_t place, const ffm_hash *hash),
                      void *context)
{
    return ffm_hash_box_through(box, NULL, part, context);
}

uint32_t ffm_hash_shape(const ffm_box *box)
{
    const uint64_t shape[5] = {box->width, box->height, box->depth, box->height > 1 ? box->pitch : 0,
                               box->depth > 1 ? box->slice : 0};
    return (uint32_t)XXH3_64bits(shape, sizeof shape);
}
