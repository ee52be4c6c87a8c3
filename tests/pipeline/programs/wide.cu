/* Adds in 512-bit registers, which must be there: wide REGISTER, of low (the first 16) or high (the other 16). Or, with
 * `library`, has the C library look for a text. */
#include <cstring>

#include <cuda_runtime_api.h>
#include <immintrin.h>

enum { LANES = 16, ROUNDS = 100 };

/* Downloads what is added each time, so that a watch has something to see. */
#define ADD(register)                                                                                                              \
    for (int round = 0; round < ROUNDS; round++)                                                                                   \
    asm volatile(                                                                                                                  \
        "vmovups (%0), %%zmm" #register "\n vaddps %%zmm" #register ", %%zmm" #register ", %%zmm" #register "\n "                  \
                                                                                                            "vmovups "             \
                                                                                                            "(%1), "               \
                                                                                                            "%%"                   \
                                                                                                            "zmm17\n "             \
                                                                                                            "vmovups "             \
                                                                                                            "%%"                   \
                                                                                                            "zm"                   \
                                                                                                            "m" #register ", (%0)" \
        :                                                                                                                          \
        : "r"(sums), "r"(value)                                                                                                    \
        : "xmm" #register, "xmm17", "memory")

__attribute__((target("avx512f"))) static void add(bool low, float *sums, const float *value)
{
    if (low)
        ADD(0);
    else
        ADD(18);
}

static bool finds()
{
    static char text[256];
    volatile char last = 'd'; /* not known to the compiler */
    memset(text, 'a', 200);
    text[100] = 'b';
    text[101] = last;
    return strstr(text, "bd") == text + 100;
}

int main(int, char **arguments)
{
    alignas(64) static float value[LANES], sums[LANES];
    float *device = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof value);
    cudaMemset(device, 0, sizeof value);
    cudaMemcpy(value, device, sizeof value, cudaMemcpyDeviceToHost);
    for (float &sum : sums)
        sum = 1e-20F;
    if (strcmp(arguments[1], "library") == 0)
        return finds() ? 0 : 1;
    add(strcmp(arguments[1], "low") == 0, sums, value);
    for (float sum : sums)
        if (sum != sums[0] || sum == 0)
            return 1;
    return 0;
}
