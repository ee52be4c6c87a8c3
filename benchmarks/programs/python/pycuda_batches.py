"""Batches with PyCUDA."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as drv

PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 p, .param .u32 n)
{
    .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .f32 %f<3>; .reg .pred %p<2>;
    ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %d2, %r5, 4; add.s64 %d3, %d1, %d2;
    ld.global.f32 %f1, [%d3]; add.f32 %f2, %f1, %f1; st.global.f32 [%d3], %f2;
DONE:
    ret;
}
"""
twice = drv.module_from_buffer(PTX.encode()).get_function("twice")
rng, total = np.random.default_rng(0), 0.0
memory, batch, made = drv.mem_alloc(8192 * 4), np.ones(8192, np.float32), np.empty(8192, np.float32)
for _turn in range(300):
    drv.memcpy_htod(memory, batch)
    twice(memory, np.int32(8192), block=(128, 1, 1), grid=(64, 1))
    drv.Context.synchronize()
    batch = np.sort(rng.random(8192, dtype=np.float32))
    drv.memcpy_dtoh(made, memory)
    total += float(made.sum())
print(round(total, 1))
