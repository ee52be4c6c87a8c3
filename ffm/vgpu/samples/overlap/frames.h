/* Frames of a camera, and what is computed from them, on the CPU and for one thread of the GPU. */
#pragma once

#include <cstdint>
#include <vector>

constexpr int side = 256;
constexpr int pixels = side * side;
constexpr int blur_passes = 3;

/* Writes frame `number`. */
void make_frame(int number, std::int32_t *frame);

/* The sums of all rows of a frame that has been blurred `blur_passes` times. */
std::vector<std::int32_t> reference_sums(const std::int32_t *frame);

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

/* A pixel of the blurred frame: integers, so that CPU and GPU agree exactly. The edges are kept. */
ON_BOTH inline std::int32_t blurred(const std::int32_t *frame, int pixel)
{
    const int column = pixel % side, row = pixel / side;
    if (column == 0 || column == side - 1 || row == 0 || row == side - 1)
        return frame[pixel];
    const std::int32_t corners =
        frame[pixel - side - 1] + frame[pixel - side + 1] + frame[pixel + side - 1] + frame[pixel + side + 1];
    const std::int32_t edges = frame[pixel - side] + frame[pixel - 1] + frame[pixel + 1] + frame[pixel + side];
    return (corners + 2 * edges + 4 * frame[pixel]) / 16;
}
