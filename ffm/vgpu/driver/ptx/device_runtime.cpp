#include "device_runtime.h"

namespace vgpu::ptx
{

namespace
{

/* The functions that cuda_device_runtime_api.h declares.
 * A grid's handle is the address of its workspace. The workspace's last word counts the arrivals of blocks over all
 * rounds. The handle is 0 if the grid was not launched cooperatively and so cannot synchronize. The error is then 720,
 * cudaErrorCooperativeLaunchTooLarge; what NVIDIA's runtime answers is not documented.
 * A conditional handle is the address of the condition's value (graphs/conditional.h). */
const char *const source = R"PTX(
.version 8.0
.target sm_75
.address_size 64

.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<2>;
    mov.u32 %r1, %envreg1;
    mov.u32 %r2, %envreg2;
    mov.b64 %d1, {%r2, %r1};
    st.param.b64 [handle], %d1;
    ret;
}

.visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %d<9>;
    ld.param.u64 %d1, [handle];
    setp.eq.u64 %p1, %d1, 0;
    @%p1 bra refused;
    bar.sync 0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %tid.z;
    or.b32 %r4, %r1, %r2;
    or.b32 %r4, %r4, %r3;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra waited;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %nctaid.y;
    mov.u32 %r3, %nctaid.z;
    cvt.u64.u32 %d2, %r1;
    cvt.u64.u32 %d3, %r2;
    cvt.u64.u32 %d4, %r3;
    mul.lo.u64 %d2, %d2, %d3;
    mul.lo.u64 %d2, %d2, %d4;
    atom.global.acq_rel.gpu.add.u64 %d5, [%d1+504], 1;
    div.u64 %d6, %d5, %d2;
    add.u64 %d6, %d6, 1;
    mul.lo.u64 %d6, %d6, %d2;
again:
    ld.acquire.gpu.global.u64 %d7, [%d1+504];
    setp.lt.u64 %p2, %d7, %d6;
    @%p2 bra again;
waited:
    bar.sync 0;
    st.param.b32 [error], 0;
    ret;
refused:
    st.param.b32 [error], 720;
    ret;
}

.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [handle];
    ld.param.u32 %r1, [value];
    st.global.u32 [%d1], %r1;
    ret;
}
)PTX";

} // namespace

void add_device_runtime(Module &module)
{
    for (auto &[name, function] : parse(source).functions) {
        auto named = module.functions.find(name);
        if (named == module.functions.end() || named->second.defined)
            continue;
        module.order.push_back(name);
        named->second = function;
    }
}

} // namespace vgpu::ptx
