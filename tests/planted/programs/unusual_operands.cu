// Instructions whose place in memory is not what their operand says, or whose size is not in their operand, reach what
// came: a bit far from the operand, a table that is looked up by AL, a store of the processor's state; operands of
// push, call and jump. Or they reach what lies before it: with the trace, everything counts as used then. Prefetching
// looks at nothing.
// variants: bit, bit_beside, table, table_beside, state, state_beside, push, call, jump, prefetch, flush
#include "planted.h"

constexpr int count = 2048;
constexpr size_t bytes = count * sizeof(int);

static long found;

static void one()
{
    found = 1;
}

static void two()
{
    found = 2;
}

static bool bit(const char *base, long number)
{
    bool set = false;
    asm volatile("bt %2, (%1)\n setc %0" : "=r"(set) : "r"(base), "r"(number) : "memory", "cc");
    return set;
}

static int looked_up(const char *table, unsigned char place)
{
    long value = place;
    asm volatile("xlatb" : "+a"(value) : "b"(table) : "memory");
    return value & 0xff;
}

static void save(char *place)
{
    asm volatile("fxsave64 (%0)" : : "r"(place) : "memory");
}

static long pushed(const char *place)
{
    long value = 0;
    asm volatile("sub $128, %%rsp\n push (%1)\n pop %0\n add $128, %%rsp" : "=r"(value) : "r"(place) : "memory", "cc");
    return value;
}

__attribute__((noinline)) static void jump(void *const *place)
{
    asm volatile("lea 1f(%%rip), %%rax\n sub $136, %%rsp\n push %%rax\n jmp *(%0)\n 1: add $136, %%rsp"
                 :
                 : "b"(place)
                 : "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}

static bool is(const char *name)
{
    return std::strstr(planted::variant(), name) == planted::variant();
}

/* The address of a function comes back from the device, in place of that of another one. */
static void functions()
{
    void (*wanted)() = two;
    void *device = nullptr;
    check(cudaMalloc(&device, bytes));
    int *slow = device_integers(count);
    // sync: call, jump unnecessary or required, bit, bit_beside, table, table_beside, state, state_beside, push, prefetch, flush absent
    UPLOAD(given, device, &wanted, sizeof wanted);
    void (**host)() = reinterpret_cast<void (**)()>(behind_zeros(count));
    host[0] = one;
    fill(slow, count, 7);
    DOWNLOAD_ASYNC(host, device, sizeof wanted);
    // sync: call, jump required, bit, bit_beside, table, table_beside, state, state_beside, push, prefetch, flush absent
    WAIT(functions, cudaStreamSynchronize(nullptr));
    if (variant("call"))
        asm volatile("sub $136, %%rsp\n call *(%0)\n add $136, %%rsp"
                     :
                     : "b"(host)
                     : "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
    else
        jump(reinterpret_cast<void *const *>(host));
    expect("function", found, 2);
}

void program()
{
    if (variant("call") || variant("jump")) {
        functions();
        return;
    }
    int *device = device_integers(count), *host = behind_zeros(count);
    const bool beside = std::strstr(planted::variant(), "beside") != nullptr;
    char *bytes_of = reinterpret_cast<char *>(host);
    fill(device, count, 15);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: bit, table, push required, state required (undecidable), prefetch unnecessary, bit_beside, table_beside, state_beside, flush unnecessary or required (undecidable), call, jump absent
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (is("bit"))
        expect("bit", bit(bytes_of - 1024, beside ? 3 : 1024 * 8 + 3), !beside);
    if (is("table"))
        expect("table", looked_up(bytes_of - 200, beside ? 100 : 200), beside ? 0 : 15);
    if (is("state"))
        save(bytes_of - (beside ? 512 : 256));
    if (is("push"))
        expect("pushed", pushed(bytes_of) & 0xff, 15);
    if (is("prefetch"))
        __builtin_prefetch(bytes_of);
    if (is("flush"))
        __builtin_ia32_clflush(bytes_of);
    settle();
}
