// Code that the program made while it ran reads the result: a string move, the x87 unit, MMX, a scan,
// compare-and-exchange; or a plain load reads other memory.
// variants: string, x87, mmx, exchange, scan, other
#include "planted.h"

#include <vector>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

/* Each takes the address in RDI and a place of 64 bytes for what it reads in RSI. */
static std::vector<unsigned char> code()
{
    if (variant("string")) /* xchg rdi, rsi; mov ecx, 8; rep movsb; ret */
        return {0x48, 0x87, 0xfe, 0xb9, 8, 0, 0, 0, 0xf3, 0xa4, 0xc3};
    if (variant("x87")) /* fild qword [rdi]; fistp qword [rsi]; ret */
        return {0xdf, 0x2f, 0xdf, 0x3e, 0xc3};
    if (variant("mmx")) /* movq mm0, [rdi]; movq [rsi], mm0; emms; ret */
        return {0x0f, 0x6f, 0x07, 0x0f, 0x7f, 0x06, 0x0f, 0x77, 0xc3};
    if (variant("exchange")) /* xor eax, eax; lock cmpxchg [rdi], eax; mov [rsi], eax; ret */
        return {0x31, 0xc0, 0xf0, 0x0f, 0xb1, 0x07, 0x89, 0x06, 0x8b, 0x07, 0x89, 0x46, 0x04, 0xc3};
    if (variant("scan")) /* mov eax, 7; mov ecx, 1; repne scasd; sete al; movzx eax, al; mov [rsi], eax; ret */
        return {0xb8, 7, 0, 0, 0, 0xb9, 1, 0, 0, 0, 0xf2, 0xaf, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0x89, 0x06, 0xc3};
    return {0x8b, 0x07, 0x89, 0x06, 0xc3}; /* mov eax, [rdi]; mov [rsi], eax; ret */
}

void program()
{
    int *device = device_integers(count), *host = pinned_integers(count), *other = pinned_integers(count, 7);
    int found[16] = {};
    const std::vector<unsigned char> wanted = code();
    void *place = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(place, wanted.data(), wanted.size());
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: string, x87, mmx, exchange, scan required, other unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    reinterpret_cast<void (*)(int *, int *)>(place)(variant("other") ? other : host, found);
    const int one = variant("scan") ? 1 : 7;
    expect("found", found[0], one);
    settle();
}
