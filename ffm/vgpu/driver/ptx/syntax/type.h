/* The fundamental types of PTX (PTX ISA, "Types"). */
#pragma once

#include <string>

namespace vgpu::ptx
{

enum class Kind { none, bits, sign, unsign, real, brain, predicate };

struct Type {
    Kind kind = Kind::none;
    int bits = 0;  /* of one lane */
    int lanes = 1; /* 2 for .f16x2 and the like */

    bool is_float() const
    {
        return kind == Kind::real || kind == Kind::brain;
    }
    int width() const /* bits in all */
    {
        return bits * lanes;
    }
    int bytes() const
    {
        return width() / 8;
    }
    std::string llvm() const;    /* as values are computed; integers for bf16 and for packed types */
    std::string integer() const; /* `iN` of the same width */
};

/* `u32`, `f16x2`, `pred`; of kind none where the word is no type. */
Type type_of(const std::string &word);

constexpr Type bits_type(int bits)
{
    return {Kind::bits, bits, 1};
}

} // namespace vgpu::ptx
