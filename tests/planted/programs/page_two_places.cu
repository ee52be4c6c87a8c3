// One instruction touches two places of the page on which a download begins: a gather or a scatter by its lanes, a copy
// or a comparison of strings by its two operands. The first place is beside the download; the second is on it, or
// beside it, too.
// variants: all
#include "planted.h"

#include <immintrin.h>

constexpr int count = 4096, lanes = 8, begin = 512;
constexpr size_t bytes = count * sizeof(int);

/* Zeros, which are followed by the memory of a download on the same page. */
static int *behind_zeros()
{
    void *memory = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(cudaHostRegister(memory, 2 * bytes, 0));
    return static_cast<int *>(memory);
}

/* Places of the lanes, in integers. */
struct Lanes {
    int of[lanes];
};

/* Without the instructions, the same by loads. */
static const bool has_gather = __builtin_cpu_supports("avx2"), has_scatter = __builtin_cpu_supports("avx512vl");

__attribute__((target("avx2"), noinline)) static int gathered_by_vector(const int *base, const Lanes &index)
{
    Lanes found = {};
    const __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(index.of));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(found.of), _mm256_i32gather_epi32(base, places, 4));
    return sum(found.of, lanes);
}

static int gathered(const int *base, const Lanes &index)
{
    if (has_gather)
        return gathered_by_vector(base, index);
    int found = 0;
    for (const int place : index.of)
        found += base[place];
    return found;
}

__attribute__((target("avx512vl"), noinline)) static void scatter_by_vector(int *base, const Lanes &index, int value)
{
    const __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(index.of));
    _mm256_i32scatter_epi32(base, places, _mm256_set1_epi32(value), 4);
}

static void scatter(int *base, const Lanes &index, int value)
{
    if (has_scatter) {
        scatter_by_vector(base, index, value);
        return;
    }
    for (const int place : index.of)
        base[place] = value;
}

static void copy_one(int *to, const int *from)
{
    asm volatile("movsl" : "+D"(to), "+S"(from) : : "memory");
}

static bool same(const int *one, const int *other)
{
    bool equal;
    asm volatile("cmpsl" : "+D"(other), "+S"(one), "=@ccz"(equal) : : "memory");
    return equal;
}

void program()
{
    int *device = device_integers(count);
    int *page[9];
    for (int *&one : page)
        one = behind_zeros();
    const Lanes onto = {{0, 8, 16, 24, begin, begin + 8, begin + 16, begin + 24}};
    const Lanes down = {{begin - 8, begin - 16, begin - 24, begin - 32, 0, 8, 16, 24}};

    fill(device, count, 7);
    DOWNLOAD_ASYNC(page[0] + begin, device, bytes);
    WAIT(onto_gathered, cudaStreamSynchronize(nullptr)); // sync: required
    expect("gathered", gathered(page[0], onto), 4 * 7);

    fill(device, count, 8);
    DOWNLOAD_ASYNC(page[1], device, begin / 2 * sizeof(int));
    WAIT(down_gathered, cudaStreamSynchronize(nullptr)); // sync: required
    expect("gathered", gathered(page[1], down), 4 * 8);

    fill(device, count, 9);
    DOWNLOAD_ASYNC(page[2] + begin, device, bytes);
    WAIT(onto_scattered, cudaStreamSynchronize(nullptr)); // sync: required
    scatter(page[2], onto, 5);
    WAIT(after_scatter, cudaDeviceSynchronize()); // sync: unnecessary
    settle();
    expect("scattered", page[2][begin + 8], 5);

    fill(device, count, 10);
    DOWNLOAD_ASYNC(page[3] + begin, device, bytes);
    WAIT(copied_onto, cudaStreamSynchronize(nullptr)); // sync: required
    copy_one(page[3] + begin + 3, page[3]);
    WAIT(after_copy, cudaDeviceSynchronize()); // sync: unnecessary
    settle();
    expect("copied", page[3][begin + 3], 0);

    fill(device, count, 11);
    DOWNLOAD_ASYNC(page[4] + begin, device, bytes);
    WAIT(copied_from, cudaStreamSynchronize(nullptr)); // sync: required
    copy_one(page[4], page[4] + begin + 3);
    expect("copied", page[4][0], 11);

    fill(device, count, 12);
    DOWNLOAD_ASYNC(page[5] + begin, device, bytes);
    WAIT(copied_beside, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    copy_one(page[5], page[5] + 3);
    expect("copied", page[5][0], 0);

    fill(device, count, 13);
    DOWNLOAD_ASYNC(page[6] + begin, device, bytes);
    WAIT(compared_with, cudaStreamSynchronize(nullptr)); // sync: required
    expect("the same", same(page[6], page[6] + begin + 3), false);

    fill(device, count, 14);
    DOWNLOAD_ASYNC(page[7] + begin, device, bytes);
    WAIT(compared, cudaStreamSynchronize(nullptr)); // sync: required
    expect("the same", same(page[7] + begin + 3, page[7]), false);

    fill(device, count, 15);
    DOWNLOAD_ASYNC(page[8] + begin, device, bytes);
    WAIT(compared_beside, cudaStreamSynchronize(nullptr)); // sync: unnecessary
    expect("the same", same(page[8], page[8] + 3), true);
}
