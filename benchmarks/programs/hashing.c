/* The collector's own hashing, and reading memory as fast as vector loads can; called by `benchmarks/hashing.py`. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "hashes.h"

/* Hash `count` bytes at `bytes`, as the collector does with a copy of so many; returns a part of the hash. */
uint64_t hash_once(const void *bytes, uint64_t count)
{
    const ffm_box box = {.address = (uint64_t)bytes,
                         .width = count,
                         .pitch = count,
                         .height = 1,
                         .slice = count,
                         .depth = 1,
                         .host = true};
    return ffm_hash_box(&box, NULL, NULL).low;
}

/* Read `count` bytes, a multiple of 256, and do as little with them as keeps the compiler from leaving it out. */
__attribute__((target("avx2"))) uint64_t read_once(const void *bytes, uint64_t count)
{
    const __m256i *from = bytes;
    __m256i sums[8] = {_mm256_setzero_si256()};
    for (uint64_t place = 0; place < count / sizeof *from; place += 8)
        for (int lane = 0; lane < 8; lane++)
            sums[lane] = _mm256_xor_si256(sums[lane], _mm256_loadu_si256(from + place + lane));
    uint64_t result = 0;
    for (int lane = 0; lane < 8; lane++)
        result ^= (uint64_t)_mm256_extract_epi64(sums[lane], 0) ^ (uint64_t)_mm256_extract_epi64(sums[lane], 3);
    return result;
}
