/* Makes all calls of the driver from one place, as interpreters do that call C: an upload that repeats, GPU work, a
 * wait that nothing needs, a download that is read, and memory that is allocated and freed. */
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda.h>

using Word = unsigned long long;
using Function = CUresult (*)(Word, Word, Word, Word);

enum { TURNS = 12, BYTES = 1 << 16, WORK = 8 << 20 };

struct Call {
    void *function;
    Word arguments[4];
};

__attribute__((noinline)) static void make(const std::vector<Call> &calls)
{
    for (const Call &call : calls) {
        const Word *word = call.arguments;
        const CUresult result = reinterpret_cast<Function>(call.function)(word[0], word[1], word[2], word[3]);
        if (result != CUDA_SUCCESS) {
            std::fprintf(stderr, "the driver answered %d\n", result);
            std::exit(1);
        }
    }
}

template <typename T> static void *function(T *of)
{
    return reinterpret_cast<void *>(of);
}

template <typename T> static Word word(T of)
{
    return reinterpret_cast<Word>(of);
}

int main()
{
    CUcontext context;
    CUdeviceptr kept = 0, passing = 0;
    std::vector<unsigned char> table(BYTES, 7), result(BYTES);
    make({{function(cuInit), {}}, {function(cuDevicePrimaryCtxRetain), {word(&context), 0}}});
    make({{function(cuCtxSetCurrent), {word(context)}}, {function(cuMemAlloc), {word(&kept), WORK}}});
    make({{function(cuMemAlloc), {word(&passing), WORK}}});
    long sum = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        make({{function(cuMemFree), {passing}}, {function(cuMemAlloc), {word(&passing), WORK}}});
        make({{function(cuMemcpyHtoD), {kept, word(table.data()), BYTES}},
              {function(cuMemsetD8Async), {passing, static_cast<Word>(turn), WORK, 0}},
              {function(cuMemcpyDtoDAsync), {kept + BYTES, passing, WORK - BYTES, 0}},
              {function(cuCtxSynchronize), {}},
              {function(cuMemcpyDtoH), {word(result.data()), passing, BYTES}}});
        sum += result[BYTES / 2];
    }
    std::printf("%ld\n", sum);
    return 0;
}
