#include "frames.h"

#include <numeric>

void make_frame(int number, std::int32_t *frame)
{
    std::uint32_t noise = static_cast<std::uint32_t>(number) * 2654435761u + 1;
    for (int pixel = 0; pixel < pixels; ++pixel) {
        noise ^= noise << 13;
        noise ^= noise >> 17;
        noise ^= noise << 5;
        frame[pixel] = static_cast<std::int32_t>(noise % 4096) + (pixel % side + number) % 32 * 64;
    }
}

std::vector<std::int32_t> reference_sums(const std::int32_t *frame)
{
    std::vector<std::int32_t> from(frame, frame + pixels), to(pixels);
    for (int pass = 0; pass < blur_passes; ++pass) {
        for (int pixel = 0; pixel < pixels; ++pixel)
            to[pixel] = blurred(from.data(), pixel);
        from.swap(to);
    }
    std::vector<std::int32_t> sums(side);
    for (int row = 0; row < side; ++row)
        sums[row] = std::accumulate(&from[row * side], &from[row * side] + side, std::int32_t{0});
    return sums;
}
