// Vector instructions touch some lanes of their memory only: a gather whose first lanes lie elsewhere reads the
// download, a masked load and a masked store reach it only with the lanes that their masks turn on. And CLZERO, which
// names no memory, clears a line of it.
// variants: all
#include "planted.h"

#include <cpuid.h>
#include <immintrin.h>

constexpr int count = 4096, lanes = 8;
constexpr size_t bytes = count * sizeof(int);

struct Lanes {
    int of[lanes];
};

constexpr Lanes on = {{-1, -1, -1, -1, -1, -1, -1, -1}}, half = {{-1, -1, -1, -1, 0, 0, 0, 0}};

__attribute__((target("avx2"))) static __m256i vector_of(const Lanes &values)
{
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(values.of));
}

/* Without these instructions, the same in single steps. */
static const bool has_vectors = __builtin_cpu_supports("avx2");

__attribute__((target("avx2"), noinline)) static int gathered(const int *base, const Lanes &index, const Lanes &mask)
{
    Lanes found = {};
    if (has_vectors)
        _mm256_storeu_si256(
            reinterpret_cast<__m256i *>(found.of),
            _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), base, vector_of(index), vector_of(mask), 4));
    for (int lane = 0; !has_vectors && lane < lanes; lane++)
        if (mask.of[lane])
            found.of[lane] = base[index.of[lane]];
    return sum(found.of, lanes);
}

__attribute__((target("avx2"), noinline)) static int loaded(const int *from, const Lanes &mask)
{
    Lanes found = {};
    if (has_vectors)
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(found.of), _mm256_maskload_epi32(from, vector_of(mask)));
    for (int lane = 0; !has_vectors && lane < lanes; lane++)
        if (mask.of[lane])
            found.of[lane] = from[lane];
    return sum(found.of, lanes);
}

__attribute__((target("avx2"), noinline)) static void store_fives(int *to, const Lanes &mask)
{
    if (has_vectors)
        _mm256_maskstore_epi32(to, vector_of(mask), _mm256_set1_epi32(5));
    for (int lane = 0; !has_vectors && lane < lanes; lane++)
        if (mask.of[lane])
            to[lane] = 5;
}

/* The line that contains the address. */
static void clear_line(int *there)
{
    enum { LINE = 64 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0x80000008, &a, &b, &c, &d) != 0 && (b & 1) != 0)
        __asm__ volatile(".byte 0x0f, 0x01, 0xfc" : : "a"(there) : "memory");
    else
        std::memset(reinterpret_cast<void *>(reinterpret_cast<size_t>(there) / LINE * LINE), 0, LINE);
}

void program()
{
    int *device = device_integers(count);
    int *host[6];
    for (int *&one : host)
        one = behind_zeros(count);
    const Lanes index = {{0, 1, 2, 3, count, count + 1, count + 2, count + 3}};

    fill(device, count, 7);
    DOWNLOAD_ASYNC(host[0], device, bytes);
    WAIT(all_gathered, cudaStreamSynchronize(nullptr)); // sync: required
    expect("gathered", gathered(host[0] - count, index, on), 4 * 7);

    fill(device, count, 8);
    DOWNLOAD_ASYNC(host[1], device, bytes);
    WAIT(half_gathered, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    expect("half of it", gathered(host[1] - count, index, half), 0);

    fill(device, count, 9);
    DOWNLOAD_ASYNC(host[2], device, bytes);
    WAIT(all_loaded, cudaStreamSynchronize(nullptr)); // sync: required
    expect("loaded", loaded(host[2] - 4, on), 4 * 9);

    fill(device, count, 10);
    DOWNLOAD_ASYNC(host[3], device, bytes);
    WAIT(half_loaded, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    expect("half of it", loaded(host[3] - 4, half), 0);
    store_fives(host[3] - 4, half);

    fill(device, count, 11);
    DOWNLOAD_ASYNC(host[4], device, bytes);
    WAIT(all_stored, cudaStreamSynchronize(nullptr)); // sync: required
    store_fives(host[4] - 4, on);
    settle();
    expect("stored", sum(host[4] - 4, lanes), lanes * 5);

    fill(device, count, 12);
    DOWNLOAD_ASYNC(host[5], device, bytes);
    WAIT(line_cleared, cudaStreamSynchronize(nullptr)); // sync: required
    clear_line(host[5] + count / 2);
    settle();
    WAIT(line_read, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    expect("cleared", sum(host[5], count), 12 * (count - 16));
}
