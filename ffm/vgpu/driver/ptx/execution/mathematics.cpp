/* Arithmetic that translated code leaves to the driver: directed rounding, 16-bit numbers, and transcendental
 * functions. */
#include "mathematics.h"

#include <cfenv>
#include <cmath>
#include <cstring>

namespace vgpu::ptx
{

namespace
{

/* The translation uses the same numbers. `odd` truncates, and sets the last bit if the result was not exact. A
 * second rounding to fewer bits then gives the right result. */
enum Direction { nearest, to_zero, down, up, odd };

class Rounding
{
  public:
    explicit Rounding(int direction) : before_(std::fegetround())
    {
        static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
        std::fesetround(modes[direction]);
    }
    ~Rounding()
    {
        std::fesetround(before_);
    }
    Rounding(const Rounding &) = delete;
    Rounding &operator=(const Rounding &) = delete;

  private:
    int before_;
};

template <typename Real> Real compute(int operation, Real a, Real b, Real c)
{
    volatile Real x = a, y = b, z = c; /* keeps the compiler from computing before the mode is set */
    switch (operation) {
    case 0:
        return x + y;
    case 1:
        return x - y;
    case 2:
        return x * y;
    case 3:
        return std::fma(x, y, z);
    case 4:
        return x / y;
    default:
        return std::sqrt(x);
    }
}

template <typename Real> Real rounded(int operation, int direction, Real a, Real b, Real c)
{
    Rounding rounding(direction);
    volatile Real result = compute<Real>(operation, a, b, c);
    return result;
}

/* `value` with its last bit set if `rest`, the error of rounding to nearest, is not zero. */
double made_odd(double value, double rest)
{
    std::int64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (rest == 0 || !std::isfinite(value) || (bits & 1))
        return value;
    bits += (rest > 0) == (value > 0) ? 1 : -1;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

struct Format {
    int precision; /* bits, with the leading one */
    int smallest;  /* the exponent of the smallest normal number */
    int largest;   /* the exponent of the largest number */
};
constexpr Format half = {11, -14, 15}, brain = {8, -126, 127};

/* Rounds to a number of the format. Values that are too large become infinite or the largest number, as the
 * direction says. */
double to_format(const Format &format, int direction, double value)
{
    if (value == 0 || !std::isfinite(value))
        return value;
    int exponent = std::max(std::ilogb(value), format.smallest) - (format.precision - 1);
    double scaled = std::scalbn(value, -exponent);
    Rounding rounding(direction);
    volatile double whole = std::nearbyint(scaled);
    double result = std::scalbn(whole, exponent);
    double limit = std::scalbn(2 - std::scalbn(1.0, 1 - format.precision), format.largest);
    if (std::fabs(result) <= limit)
        return result;
    bool stays = direction == to_zero || (direction == down && value > 0) || (direction == up && value < 0);
    return std::copysign(stays ? limit : HUGE_VAL, value);
}

std::uint16_t bits_of(const Format &format, double value)
{
    std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    int fraction_bits = format.precision - 1;
    int exponent_bits = 15 - fraction_bits;
    std::uint16_t top = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
    if (std::isnan(value))
        return 0x7fff;
    if (std::isinf(value))
        return sign | top;
    if (value == 0)
        return sign;
    int exponent = std::max(std::ilogb(value), format.smallest);
    int fraction = static_cast<int>(std::scalbn(std::fabs(value), fraction_bits - exponent));
    int biased = (exponent - format.smallest) << fraction_bits; /* the leading bit carries into the exponent */
    return static_cast<std::uint16_t>(sign | (biased + fraction));
}

double value_of(const Format &format, std::uint16_t bits)
{
    int fraction_bits = format.precision - 1;
    int exponent = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    int top = (1 << (15 - fraction_bits)) - 1;
    double size;
    if (exponent == top)
        size = fraction ? std::nan("") : HUGE_VAL;
    else if (exponent == 0)
        size = std::scalbn(fraction, format.smallest - fraction_bits);
    else
        size = std::scalbn(fraction + (1 << fraction_bits), format.smallest + exponent - 1 - fraction_bits);
    return bits & 0x8000 ? -size : size;
}

struct SmallFormat {
    int mantissa;               /* bits */
    int smallest;               /* exponent of normal numbers */
    double largest;             /* the largest finite number */
    std::uint32_t largest_bits; /* and its bits */
};

constexpr SmallFormat e4m3 = {3, -6, 448, 0x7e}, e5m2 = {2, -14, 57344, 0x7b};

} // namespace

extern "C" {

float vgpu_round_f32(int operation, int direction, float a, float b, float c)
{
    return rounded<float>(operation, direction, a, b, c);
}

double vgpu_round_f64(int operation, int direction, double a, double b, double c)
{
    return rounded<double>(operation, direction, a, b, c);
}

std::uint16_t vgpu_narrow_f64(int is_brain, int direction, double value)
{
    const Format &format = is_brain ? brain : half;
    return bits_of(format, to_format(format, direction, value));
}

float vgpu_narrow_f32(int direction, double value)
{
    Rounding rounding(direction);
    volatile double exact = value;
    volatile float result = static_cast<float>(exact);
    return result;
}

/* a * b is exact in double precision. The sum is rounded to odd first, and then once to the format. */
std::uint16_t vgpu_fma_16(int is_brain, std::uint16_t a, std::uint16_t b, std::uint16_t c)
{
    const Format &format = is_brain ? brain : half;
    double product = value_of(format, a) * value_of(format, b), added = value_of(format, c);
    double sum = product + added;
    double part = sum - product;
    double rest = (product - (sum - part)) + (added - part);
    return bits_of(format, to_format(format, nearest, std::isfinite(sum) ? made_odd(sum, rest) : sum));
}

std::uint32_t vgpu_narrow_8(int is_e5m2, float value)
{
    const SmallFormat &format = is_e5m2 ? e5m2 : e4m3;
    std::uint32_t sign = std::signbit(value) ? 0x80 : 0;
    double size = std::fabs(static_cast<double>(value));
    if (std::isnan(size))
        return 0x7f;
    int exponent = size == 0 ? format.smallest : std::max(std::ilogb(size), format.smallest);
    double whole = std::nearbyint(std::ldexp(size, format.mantissa - exponent));
    if (std::isinf(size) || std::ldexp(whole, exponent - format.mantissa) > format.largest)
        return sign | format.largest_bits;
    /* A normal number's implicit leading bit adds one to the exponent, as a carry from rounding does. */
    std::uint32_t biased = static_cast<std::uint32_t>(exponent - format.smallest);
    return sign | ((biased << format.mantissa) + static_cast<std::uint32_t>(whole));
}

float vgpu_widen_8(int is_e5m2, std::uint32_t bits)
{
    const SmallFormat &format = is_e5m2 ? e5m2 : e4m3;
    std::uint32_t size = bits & 0x7f, exponent = size >> format.mantissa;
    std::uint32_t fraction = size & ((1u << format.mantissa) - 1);
    double value;
    if (size > format.largest_bits)
        value = is_e5m2 && fraction == 0 ? HUGE_VAL : std::nan("");
    else if (exponent == 0)
        value = std::ldexp(fraction, format.smallest - format.mantissa);
    else
        value = std::ldexp(fraction + (1u << format.mantissa),
                           static_cast<int>(exponent) - 1 + format.smallest - format.mantissa);
    return static_cast<float>(bits & 0x80 ? -value : value);
}

float vgpu_integer_f32(int direction, std::int64_t value, int is_signed)
{
    Rounding rounding(direction);
    volatile std::int64_t exact = value;
    volatile float result =
        is_signed ? static_cast<float>(exact) : static_cast<float>(static_cast<std::uint64_t>(exact));
    return result;
}

double vgpu_integer_f64(int direction, std::int64_t value, int is_signed)
{
    Rounding rounding(direction);
    volatile std::int64_t exact = value;
    volatile double result =
        is_signed ? static_cast<double>(exact) : static_cast<double>(static_cast<std::uint64_t>(exact));
    if (direction != odd)
        return result;
    bool inexact = is_signed ? static_cast<__int128>(static_cast<double>(result)) != value
                             : static_cast<__int128>(static_cast<double>(result)) != static_cast<std::uint64_t>(value);
    return made_odd(result, inexact ? result : 0);
}

float vgpu_approximate(int function, float x)
{
    switch (function) {
    case 0:
        return std::sin(x);
    case 1:
        return std::cos(x);
    case 2:
        return std::exp2(x);
    case 3:
        return std::log2(x);
    default:
        return std::tanh(x);
    }
}

/* fns: the place of the n-th set bit, counted from `base` upwards for n > 0 and downwards for n < 0. All ones if
 * there is no such bit. */
std::uint32_t vgpu_nth_bit(std::uint32_t mask, std::uint32_t base, std::int32_t n)
{
    if (n == 0)
        return mask >> (base & 31) & 1 ? base : UINT32_MAX;
    int step = n > 0 ? 1 : -1, left = std::abs(n);
    for (int place = static_cast<int>(base); place >= 0 && place < 32; place += step)
        if (mask >> place & 1 && --left == 0)
            return static_cast<std::uint32_t>(place);
    return UINT32_MAX;
}

} // extern "C"

} // namespace vgpu::ptx
