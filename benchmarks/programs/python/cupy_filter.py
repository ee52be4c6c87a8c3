"""A box filter with CuPy."""

import cupy as cp
import numpy as np

box = cp.RawKernel(
    r"""
extern "C" __global__ void box(const float *in, float *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int u = min(max(x + dx, 0), w - 1), v = min(max(y + dy, 0), h - 1);
            sum += in[v * w + u];
        }
    out[y * w + x] = sum / 9.0f;
}
""",
    "box",
)
rng = np.random.default_rng(0)
image, total = rng.random((96, 128), dtype=np.float32), 0.0
for _turn in range(300):
    given = cp.asarray(image)
    made = cp.empty_like(given)
    box((8, 12), (16, 8), (given, made, np.int32(128), np.int32(96)))
    cp.cuda.Device().synchronize()
    image = np.sort(rng.random((96, 128), dtype=np.float32), axis=1)
    total += float(cp.asnumpy(made).mean())
print(round(total, 2))
