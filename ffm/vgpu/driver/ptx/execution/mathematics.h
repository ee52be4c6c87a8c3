/* Arithmetic that translated code calls; `prelude.cpp` declares the same for it. Directions of rounding: 0 to nearest,
 * 1 towards zero, 2 down, 3 up, 4 to odd. */
#pragma once

#include <cstdint>

namespace vgpu::ptx
{

extern "C" {

/* Operations: 0 add, 1 sub, 2 mul, 3 fma, 4 div, 5 sqrt. */
float vgpu_round_f32(int operation, int direction, float a, float b, float c);
double vgpu_round_f64(int operation, int direction, double a, double b, double c);

std::uint16_t vgpu_narrow_f64(int is_brain, int direction, double value);
float vgpu_narrow_f32(int direction, double value);

/* Floating-point numbers of 8 bits, e4m3 or e5m2 (PTX ISA, "Alternate Floating-Point Data Formats"). Narrowing rounds
 * to nearest, and to the largest finite number beyond that. */
std::uint32_t vgpu_narrow_8(int is_e5m2, float value);
float vgpu_widen_8(int is_e5m2, std::uint32_t bits);
std::uint16_t vgpu_fma_16(int is_brain, std::uint16_t a, std::uint16_t b, std::uint16_t c);
float vgpu_integer_f32(int direction, std::int64_t value, int is_signed);
double vgpu_integer_f64(int direction, std::int64_t value, int is_signed);

/* Functions: 0 sine, 1 cosine, 2 power of two, 3 binary logarithm, 4 hyperbolic tangent. */
float vgpu_approximate(int function, float x);
std::uint32_t vgpu_nth_bit(std::uint32_t mask, std::uint32_t base, std::int32_t n);
}

} // namespace vgpu::ptx
