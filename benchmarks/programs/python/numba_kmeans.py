"""k-means with Numba: the CPU draws starts for another try meanwhile."""

import numpy as np
from numba import cuda


@cuda.jit
def assign(points, centres, labels):
    i = cuda.grid(1)
    if i < points.shape[0]:
        best, nearest = 1e30, 0
        for k in range(centres.shape[0]):
            dx = points[i, 0] - centres[k, 0]
            dy = points[i, 1] - centres[k, 1]
            d = dx * dx + dy * dy
            if d < best:
                best, nearest = d, k
        labels[i] = nearest


rng = np.random.default_rng(0)
points = rng.random((4000, 2), dtype=np.float32)
centres = points[:8].copy()
d_points, d_labels = cuda.to_device(points), cuda.device_array(len(points), np.int32)
for _turn in range(200):
    d_centres = cuda.to_device(centres)
    assign[32, 128](d_points, d_centres, d_labels)
    cuda.synchronize()
    others = np.sort(rng.random((20000), dtype=np.float32))
    labels = d_labels.copy_to_host()
    for k in range(8):
        mine = points[labels == k]
        if len(mine):
            centres[k] = mine.mean(axis=0)
print(centres.sum().round(2), others[0].round(4))
