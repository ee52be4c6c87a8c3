// Vector instructions with masks reach the destination only with lanes that are masked out, or with one that is not.
// The C library has such instructions in memset and memcmp for small sizes. Where they are hidden from it, as from what
// the trace follows, memcmp loads whole vectors, and then drops what lies behind its last byte: that counts as used.
// variants: moved_beside, moved, compared_beside, compared, stored_beside, stored, avx_beside, avx, memset_beside, memset, memcmp_beside, memcmp
#include "planted.h"

#include <immintrin.h>

constexpr int count = 512, lanes = 8;
constexpr unsigned all_but_last = 0x7f;

static int *host;
static volatile int in_memory = 7;
static char zeros[64];

/* The first so many integers of eight, of which the last but one is the first before the destination. */
__attribute__((target("avx512vl"))) static int moved(unsigned mask)
{
    int found[lanes];
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(found), _mm256_maskz_loadu_epi32(mask, host - lanes + 1));
    return found[lanes - 1];
}

__attribute__((target("avx512vl"))) static int compared(unsigned mask)
{
    return _mm256_mask_cmpneq_epi32_mask(mask, _mm256_setzero_si256(),
                                         *reinterpret_cast<__m256i_u *>(host - lanes + 1));
}

__attribute__((target("avx512vl"))) static void stored(unsigned mask)
{
    _mm256_mask_storeu_epi32(host - lanes + 1, mask, _mm256_set1_epi32(in_memory));
}

__attribute__((target("avx2"))) static int by_avx(int last)
{
    int found[lanes];
    const __m256i mask = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, -1, last);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(found), _mm256_maskload_epi32(host - lanes + 1, mask));
    return found[lanes - 1];
}

static int by_library(bool reaches)
{
    volatile size_t bytes = 24; /* not known to the compiler */
    char *from = reinterpret_cast<char *>(host) - 24 + (reaches ? 4 : 0);
    if (variant("memset") || variant("memset_beside")) {
        std::memset(from, 7, bytes);
        return reaches ? host[0] / 0x01010101 : 0;
    }
    return std::memcmp(from, zeros, bytes) == 0 ? 0 : 7;
}

static int look(bool reaches)
{
    const unsigned mask = reaches ? 0xff : all_but_last;
    const bool masks = __builtin_cpu_supports("avx512vl");
    if (variant("memset") || variant("memset_beside") || variant("memcmp") || variant("memcmp_beside"))
        return by_library(reaches);
    if ((variant("avx") || variant("avx_beside")) && __builtin_cpu_supports("avx2"))
        return by_avx(reaches ? -1 : 0);
    if (masks && (variant("moved") || variant("moved_beside")))
        return moved(mask);
    if (masks && (variant("compared") || variant("compared_beside")))
        return compared(mask) >> (lanes - 1) ? 7 : 0;
    if (masks && (variant("stored") || variant("stored_beside")))
        stored(mask);
    return reaches ? host[0] : 0;
}

void program()
{
    int *device = device_integers(count);
    host = behind_zeros(count);
    const bool reaches = std::strchr(planted::variant(), '_') == nullptr;
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    // sync: moved, compared, avx, memcmp required, stored, memset required (undecidable), moved_beside, compared_beside, stored_beside, avx_beside, memset_beside unnecessary, memcmp_beside unnecessary or required (undecidable)
    WAIT(last, cudaStreamSynchronize(nullptr));
    expect("found", look(reaches), reaches ? 7 : 0);
    settle();
}
