// A kernel reads its input from pinned memory by a texture: no parameter contains the address. After a wait the
// CPU writes the next input there, or elsewhere.
// variants: there, elsewhere
#include "planted.h"

#include <cuda.h>

static const char code[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 destination, .param .u64 texture)
{
    .reg .b32 %r<7>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [destination];
    ld.param.u64 %d2, [texture];
    mov.u32 %r1, %ctaid.x;
    tex.1d.v4.s32.s32 {%r2, %r3, %r4, %r5}, [%d2, {%r1}];
    add.s32 %r6, %r2, 1;
    mad.wide.u32 %d3, %r1, 4, %d1;
    st.global.u32 [%d3], %r6;
    ret;
}
)";

constexpr int count = 64, turns = 3;
constexpr size_t bytes = count * sizeof(int);

static CUfunction loaded()
{
    CUmodule module;
    CUfunction function;
    expect("module", cuModuleLoadData(&module, code), CUDA_SUCCESS); // sync: unnecessary
    expect("function", cuModuleGetFunction(&function, module, "add_one"), CUDA_SUCCESS);
    return function;
}

static CUtexObject texture_of(int *source)
{
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = reinterpret_cast<CUdeviceptr>(source);
    resource.res.linear.format = CU_AD_FORMAT_SIGNED_INT32;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = bytes;
    CUDA_TEXTURE_DESC how = {};
    how.flags = CU_TRSF_READ_AS_INTEGER;
    CUtexObject texture = 0;
    expect("texture", cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
    return texture;
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(turns * count), *busy = device_integers(1), *result = pinned_integers(turns * count);
    int *inputs[turns + 1];
    for (int turn = 0; turn <= turns; ++turn)
        inputs[turn] = variant("there") && turn > 0 ? inputs[0] : pinned_integers(count);
    const CUfunction add_one = loaded();
    for (int turn = 0; turn < turns; ++turn) {
        int *destination = device + turn * count;
        CUtexObject texture = texture_of(inputs[turn]);
        void *parameters[] = {&destination, &texture};
        fill(busy, 1, 0, stream);
        expect("launch", cuLaunchKernel(add_one, count, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), CUDA_SUCCESS);
        WAIT(wait, cudaStreamSynchronize(stream)); // sync: there required, elsewhere unnecessary
        for (int index = 0; index < count; ++index)
            inputs[turn + 1][index] = turn + 1;
    }
    settle();
    DOWNLOAD_ASYNC(result, device, turns * bytes, stream);
    WAIT(last, cudaStreamSynchronize(stream)); // sync: required
    expect("sum", sum(result, turns * count), (1 + 2 + 3) * count);
}
