#include "sampling.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "image_axes.h"

namespace vgpu::ptx
{

namespace
{

/* Filter weights have 8 fractional bits ("Linear Filtering"). How they are rounded is not documented. */
constexpr float weight_steps = 256;

/* The one or two texels that a coordinate selects along an axis; -1 outside the image. */
struct Selection {
    std::int64_t first = 0, second = 0;
    float weight = 0; /* of the second texel */
};

std::int64_t texel_place(std::int64_t index, std::int64_t count, CUaddress_mode mode)
{
    if (index >= 0 && index < count)
        return index;
    if (mode == CU_TR_ADDRESS_MODE_BORDER)
        return -1;
    if (mode == CU_TR_ADDRESS_MODE_WRAP)
        return ((index % count) + count) % count;
    return index < 0 ? 0 : count - 1; /* a mirrored coordinate is at most half a texel outside */
}

Selection select(float x, std::size_t size, CUaddress_mode mode, bool normalized, bool filtered)
{
    std::int64_t count = static_cast<std::int64_t>(size);
    if (!normalized && mode != CU_TR_ADDRESS_MODE_BORDER)
        mode = CU_TR_ADDRESS_MODE_CLAMP;
    if (!std::isfinite(x))
        x = 0;
    if (normalized) {
        float whole = std::floor(x);
        if (mode == CU_TR_ADDRESS_MODE_WRAP)
            x -= whole;
        else if (mode == CU_TR_ADDRESS_MODE_MIRROR)
            x = std::fmod(whole, 2.0f) == 0 ? x - whole : 1 - (x - whole);
        x *= static_cast<float>(count);
    }
    x = std::clamp(x, -2.0f, static_cast<float>(count) + 2);
    Selection selection;
    if (!filtered) {
        selection.first = texel_place(static_cast<std::int64_t>(std::floor(x)), count, mode);
        return selection;
    }
    float below = std::floor(x - 0.5f);
    selection.weight = std::nearbyint((x - 0.5f - below) * weight_steps) / weight_steps;
    selection.first = texel_place(static_cast<std::int64_t>(below), count, mode);
    selection.second = texel_place(static_cast<std::int64_t>(below) + 1, count, mode);
    return selection;
}

float half_value(std::uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                 : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                 : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    return bits & 0x8000 ? -size : size;
}

/* An integer channel, sign-extended if the format is signed. */
std::int64_t integer_channel(CUarray_format format, const char *place)
{
    std::uint32_t bits = 0;
    std::memcpy(&bits, place, channel_bytes(format));
    switch (format) {
    case CU_AD_FORMAT_SIGNED_INT8:
        return static_cast<std::int8_t>(bits);
    case CU_AD_FORMAT_SIGNED_INT16:
        return static_cast<std::int16_t>(bits);
    case CU_AD_FORMAT_SIGNED_INT32:
        return static_cast<std::int32_t>(bits);
    default:
        return bits;
    }
}

/* A channel as a floating-point number. Integers become fractions of their largest value. */
float real_channel(CUarray_format format, const char *place)
{
    if (format == CU_AD_FORMAT_FLOAT) {
        float value;
        std::memcpy(&value, place, sizeof value);
        return value;
    }
    if (format == CU_AD_FORMAT_HALF) {
        std::uint16_t bits;
        std::memcpy(&bits, place, sizeof bits);
        return half_value(bits);
    }
    bool is_signed = format == CU_AD_FORMAT_SIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT16;
    std::size_t bits = 8 * channel_bytes(format) - (is_signed ? 1 : 0);
    float largest = static_cast<float>((std::uint32_t{1} << bits) - 1);
    return std::max(static_cast<float>(integer_channel(format, place)) / largest, -1.0f);
}

/* A texture, and how its texels are read. */
class Texels
{
  public:
    explicit Texels(const ImageObject &texture) : image_(texture.image), texture_(texture.texture) {}

    bool yields_integers() const
    {
        return is_integer(image_.format) &&
               (channel_bytes(image_.format) == 4 || (texture_.flags & CU_TRSF_READ_AS_INTEGER) != 0);
    }

    std::uint32_t integer(std::int64_t x, std::int64_t y, std::int64_t z, unsigned channel) const
    {
        const char *texel = find(x, y, z);
        return texel ? static_cast<std::uint32_t>(
                           integer_channel(image_.format, texel + channel * channel_bytes(image_.format)))
                     : 0;
    }

    float real(std::int64_t x, std::int64_t y, std::int64_t z, unsigned channel) const
    {
        const char *texel = find(x, y, z);
        if (!texel)
            return image_.linear ? 0 : texture_.borderColor[channel];
        return real_channel(image_.format, texel + channel * channel_bytes(image_.format));
    }

    float filtered(const Selection axes[3], unsigned channel) const
    {
        float sum = 0;
        for (unsigned corner = 0; corner < 8; ++corner) {
            float weight = 1;
            std::int64_t place[3];
            for (unsigned axis = 0; axis < 3; ++axis) {
                bool second = (corner >> axis & 1) != 0;
                weight *= second ? axes[axis].weight : 1 - axes[axis].weight;
                place[axis] = second ? axes[axis].second : axes[axis].first;
            }
            if (weight != 0)
                sum += weight * real(place[0], place[1], place[2], channel);
        }
        return sum;
    }

  private:
    const char *find(std::int64_t x, std::int64_t y, std::int64_t z) const
    {
        if (x < 0 || y < 0 || z < 0)
            return nullptr;
        return image_.memory + static_cast<std::size_t>(z) * image_.slice_pitch +
               static_cast<std::size_t>(y) * image_.row_pitch + static_cast<std::size_t>(x) * image_.texel_bytes();
    }

    const Image &image_;
    const CUDA_TEXTURE_DESC &texture_;
};

/* The face that a direction hits, and where ("Cubemap Textures"). An image's layers are the faces, six for each
 * cube. */
Coordinates on_face(const Coordinates &direction)
{
    float axes[3], place[2];
    std::memcpy(axes, direction.values, sizeof axes);
    const auto [x, y, z] = axes;
    float size[3] = {std::fabs(x), std::fabs(y), std::fabs(z)};
    int major = size[0] >= size[1] && size[0] >= size[2] ? 0 : size[1] >= size[2] ? 1 : 2;
    bool negative = axes[major] < 0;
    place[0] = major == 0 ? (negative ? z : -z) : major == 2 && negative ? -x : x;
    place[1] = major == 1 ? (negative ? -z : z) : -y;
    Coordinates at = {2, true, {}, 6 * direction.layer + static_cast<std::uint32_t>(2 * major + (negative ? 1 : 0))};
    for (int axis = 0; axis < 2; ++axis) {
        float part = (place[axis] / size[major] + 1) / 2;
        std::memcpy(&at.values[axis], &part, sizeof part);
    }
    return at;
}

} // namespace

void sample(const ImageObject &texture, const Coordinates &at, std::uint32_t channels[4])
{
    if (at.dimensions == image_of_faces)
        return sample(texture, on_face(at), channels);
    const Image &image = texture.image;
    const std::size_t sizes[3] = {image.width, image.height, image.depth};
    bool filtered = at.real && texture.texture.filterMode == CU_TR_FILTER_MODE_LINEAR && !image.linear;
    bool normalized = (texture.texture.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0 && !image.linear;
    Selection axes[3];
    for (int axis = 0; axis < at.dimensions; ++axis) {
        CUaddress_mode mode = image.linear ? CU_TR_ADDRESS_MODE_BORDER : texture.texture.addressMode[axis];
        if (at.real) {
            float x;
            std::memcpy(&x, &at.values[axis], sizeof x);
            axes[axis] = select(x, sizes[axis], mode, normalized, filtered);
        } else {
            axes[axis].first =
                texel_place(static_cast<std::int32_t>(at.values[axis]), static_cast<std::int64_t>(sizes[axis]),
                            mode == CU_TR_ADDRESS_MODE_BORDER ? mode : CU_TR_ADDRESS_MODE_CLAMP);
        }
    }
    if (at.dimensions < 3) {
        std::int64_t layer = static_cast<std::int32_t>(at.layer);
        axes[2].first = texel_place(layer, static_cast<std::int64_t>(image.depth), CU_TR_ADDRESS_MODE_CLAMP);
    }
    Texels texels(texture);
    bool integers = texels.yields_integers();
    for (unsigned channel = 0; channel < 4; ++channel) {
        channels[channel] = 0;
        if (channel >= image.channels)
            continue;
        if (integers) {
            channels[channel] = texels.integer(axes[0].first, axes[1].first, axes[2].first, channel);
            continue;
        }
        float value = filtered ? texels.filtered(axes, channel)
                               : texels.real(axes[0].first, axes[1].first, axes[2].first, channel);
        std::memcpy(&channels[channel], &value, sizeof value);
    }
}

char *surface_texel(const ImageObject &surface, const Coordinates &at, std::uint32_t bytes, Outside outside)
{
    const Image &image = surface.image;
    std::int64_t last[3] = {static_cast<std::int64_t>(image.row_pitch) - bytes,
                            static_cast<std::int64_t>(image.height) - 1, static_cast<std::int64_t>(image.depth) - 1};
    std::int64_t place[3] = {0, 0, static_cast<std::int32_t>(at.layer)};
    for (int axis = 0; axis < at.dimensions; ++axis)
        place[axis] = static_cast<std::int32_t>(at.values[axis]);
    for (int axis = 0; axis < 3; ++axis) {
        if (outside == Outside::clamp)
            place[axis] = std::clamp<std::int64_t>(place[axis], 0, std::max<std::int64_t>(last[axis], 0));
        if (place[axis] < 0 || place[axis] > last[axis])
            return nullptr;
    }
    return image.memory + static_cast<std::size_t>(place[2]) * image.slice_pitch +
           static_cast<std::size_t>(place[1]) * image.row_pitch + static_cast<std::size_t>(place[0]);
}

} // namespace vgpu::ptx
