// A kernel keeps the address that it is given in a variable of the device, and another one, which is given nothing,
// writes there. A download between and after them is not repeated, though the bytes stay the same for a while.
// variants: all
#include "planted.h"

#include <cuda.h>

constexpr int count = 256, turns = 4;
constexpr size_t bytes = count * sizeof(int);

/* kept = address; where the value is not negative, *kept = value */
static const char code[] = R"(
.version 8.0
.target sm_90
.address_size 64

.global .align 8 .u64 kept;

.visible .entry keep(.param .u64 keep_address)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [keep_address];
    st.global.u64 [kept], %rd1;
    ret;
}

.visible .entry write(.param .u32 write_value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u32 %r1, [write_value];
    setp.lt.s32 %p1, %r1, 0;
    @%p1 bra $done;
    ld.global.u64 %rd1, [kept];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
$done:
    ret;
}
)";

static CUmodule module;

template <typename Given> static void launch(const char *name, int threads, Given given)
{
    CUfunction function;
    void *parameters[] = {&given};
    check(static_cast<cudaError_t>(cuModuleGetFunction(&function, module, name)));
    check(static_cast<cudaError_t>(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr)));
}

void program()
{
    int *device = device_integers(count), *host = pageable_integers(count);
    check(static_cast<cudaError_t>(cuModuleLoadData(&module, code))); // sync: unnecessary
    check(cudaMemset(device, 0, bytes));
    launch("keep", 1, device);
    for (int turn = 0; turn < turns; turn++) {
        launch("write", count, turn < turns - 1 ? -1 : turn);
        // The bytes stay the same at first, so that not all of these waits show.
        DOWNLOAD(each, host, device, bytes); // sync: required (undecidable); transfer: needed
        expect("sum", sum(host, count), turn < turns - 1 ? 0 : turn * count);
    }
}
