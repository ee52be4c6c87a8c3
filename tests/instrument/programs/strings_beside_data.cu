// A program that copies and fills by string instructions beside data that is watched, of all sizes, over the borders of
// pages, and from one watched page to another. Prints what it finds in memory.
#include <cstdio>
#include <cstring>

#include <cuda_runtime_api.h>
#include <sys/mman.h>

constexpr size_t page = 4096, pages = 6, bytes = pages * page;
constexpr size_t downloaded = 1024; // of the third page, from its offset 512 on

static unsigned long hash(const unsigned char *memory, size_t first, size_t end)
{
    unsigned long result = 5381;
    for (size_t index = first; index < end; ++index)
        result = result * 33 + memory[index];
    return result;
}

#define COPY(suffix, to, from, count)                                                                                  \
    do {                                                                                                               \
        void *target = (to);                                                                                           \
        const void *source = (from);                                                                                   \
        size_t left = (count);                                                                                         \
        __asm__ volatile("rep movs" suffix : "+D"(target), "+S"(source), "+c"(left) : : "memory");                     \
        std::printf("%zu %zu %zu\n", static_cast<unsigned char *>(target) - memory, left,                              \
                    static_cast<const unsigned char *>(source) - memory);                                              \
    } while (0)

#define FILL(suffix, to, value, count)                                                                                 \
    do {                                                                                                               \
        void *target = (to);                                                                                           \
        size_t left = (count);                                                                                         \
        __asm__ volatile("rep stos" suffix : "+D"(target), "+c"(left) : "a"(value) : "memory");                        \
        std::printf("%zu %zu\n", static_cast<unsigned char *>(target) - memory, left);                                 \
    } while (0)

int main()
{
    auto *memory =
        static_cast<unsigned char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    unsigned char *data = memory + 2 * page + 512, *other = memory + 4 * page + 100, *device = nullptr;
    for (size_t index = 0; index < bytes; ++index)
        memory[index] = static_cast<unsigned char>(index * 7 + index / 251);
    cudaMalloc((void **)&device, page);
    cudaMemset(device, 9, page);
    cudaMemcpy(data, device, downloaded, cudaMemcpyDeviceToHost);
    cudaMemcpy(other, device, downloaded, cudaMemcpyDeviceToHost);
    FILL("b", memory + page + 3, 0x1122334455667788, page + 400); // to before the data
    FILL("q", memory + 2 * page + 1600, 0x1122334455667788, 300); // behind it, to its page's end
    FILL("w", memory + 2 * page + 1544, 0x1122334455667788, 20);
    COPY("b", memory + 2 * page + 2000, memory + 5, 2000); // from elsewhere
    COPY("q", memory + 3, memory + 2 * page + 1700, 200);  // to elsewhere
    COPY("l", memory + 2 * page + 2048, memory + 2 * page + 3000, 200);
    COPY("b", memory + 2 * page + 3001, memory + 2 * page + 3000, 500);  // overlapping: repeats a byte
    COPY("b", memory + 4 * page + 1500, memory + 2 * page + 1600, 2000); // beside other data
    COPY("q", memory + 2 * page + 3992, memory + page + 8, 30);          // over the border of a page
    COPY("b", memory + 2 * page, memory + 5 * page, 700);                // into the data
    std::printf("%lx %lx\n", hash(memory, 0, 2 * page + 512), hash(memory, 2 * page + 512, bytes));
    return 0;
}
