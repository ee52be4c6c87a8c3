// Instructions that reach further than the place that they name: a bit test by its number, a translation of a byte by
// the byte, one that loads all of the floating-point registers. The place lies beside the download, what they read is
// in it.
// variants: all
#include "planted.h"

constexpr int count = 4096, bits = 32;
constexpr size_t bytes = count * sizeof(int);

static bool has_bit(const int *base, long number)
{
#ifdef __x86_64__
    bool set;
    asm volatile("btq %[number], (%[base])" : "=@ccc"(set) : [number] "r"(number), [base] "r"(base) : "memory");
    return set;
#else
    return base[number / bits] >> number % bits & 1;
#endif
}

static void set_bit(int *base, long number)
{
#ifdef __x86_64__
    asm volatile("btsq %[number], (%[base])" : : [number] "r"(number), [base] "r"(base) : "memory", "cc");
#else
    base[number / bits] |= 1 << number % bits;
#endif
}

static int translated(const uint8_t *table, uint8_t byte)
{
#ifdef __x86_64__
    asm volatile("xlatb" : "+a"(byte) : "b"(table) : "memory");
    return byte;
#else
    return table[byte];
#endif
}

/* `area` is 512 bytes (Intel's manual, volume 1, section 10.5): XMM6 lies in their middle. */
static void save_registers(void *area)
{
#ifdef __x86_64__
    asm volatile("fxsave64 (%[area])" : : [area] "r"(area) : "memory");
#endif
}

static int restored_register(const void *area)
{
    int value;
#ifdef __x86_64__
    asm volatile("fxrstor64 (%[area])\n\tmovd %%xmm6, %[value]"
                 : [value] "=r"(value)
                 : [area] "r"(area)
                 : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#else
    std::memcpy(&value, static_cast<const char *>(area) + 256, sizeof value);
#endif
    return value;
}

void program()
{
    int *device = device_integers(count);
    int *host[5];
    for (int *&one : host)
        one = behind_zeros(count);

    fill(device, count, 7);
    DOWNLOAD_ASYNC(host[0], device, bytes);
    WAIT(tested, cudaStreamSynchronize(nullptr)); // sync: required
    expect("a bit of it", has_bit(host[0] - count, (count + 20) * bits + 1), 1);

    fill(device, count, 8);
    DOWNLOAD_ASYNC(host[1], device, bytes);
    WAIT(set, cudaStreamSynchronize(nullptr)); // sync: required
    set_bit(host[1] - count, (count + 20) * bits + 1);
    settle();
    expect("with a bit more", host[1][20], 8 + 2);

    fill(device, count, 9);
    DOWNLOAD_ASYNC(host[2], device, bytes);
    WAIT(looked_up, cudaStreamSynchronize(nullptr)); // sync: required
    expect("a byte of it", translated(reinterpret_cast<uint8_t *>(host[2]) - 40, 240), 9);

    void *area = host[3] - 64;
    save_registers(area);
    fill(device, count, 10);
    DOWNLOAD_ASYNC(host[3], device, bytes);
    WAIT(restored, cudaStreamSynchronize(nullptr)); // sync: required
    expect("a register of it", restored_register(area), 10);

    fill(device, count, 11);
    DOWNLOAD_ASYNC(host[4], device, bytes);
    WAIT(beside, cudaStreamSynchronize(nullptr)); // sync: unnecessary
}
