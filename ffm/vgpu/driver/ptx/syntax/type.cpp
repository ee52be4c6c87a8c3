#include "type.h"

#include <map>

namespace vgpu::ptx
{

std::string Type::integer() const
{
    return "i" + std::to_string(width());
}

std::string Type::llvm() const
{
    if (kind == Kind::predicate)
        return "i1";
    if (kind != Kind::real || lanes > 1)
        return integer();
    return bits == 16 ? "half" : bits == 32 ? "float" : "double";
}

Type type_of(const std::string &word)
{
    static const std::map<std::string, Type> *types = new std::map<std::string, Type>{
        {"pred", {Kind::predicate, 1, 1}}, {"b8", {Kind::bits, 8, 1}},       {"b16", {Kind::bits, 16, 1}},
        {"b32", {Kind::bits, 32, 1}},      {"b64", {Kind::bits, 64, 1}},     {"b128", {Kind::bits, 128, 1}},
        {"u8", {Kind::unsign, 8, 1}},      {"u16", {Kind::unsign, 16, 1}},   {"u32", {Kind::unsign, 32, 1}},
        {"u64", {Kind::unsign, 64, 1}},    {"s8", {Kind::sign, 8, 1}},       {"s16", {Kind::sign, 16, 1}},
        {"s32", {Kind::sign, 32, 1}},      {"s64", {Kind::sign, 64, 1}},     {"f16", {Kind::real, 16, 1}},
        {"f32", {Kind::real, 32, 1}},      {"f64", {Kind::real, 64, 1}},     {"f16x2", {Kind::real, 16, 2}},
        {"bf16", {Kind::brain, 16, 1}},    {"bf16x2", {Kind::brain, 16, 2}}, {"u16x2", {Kind::unsign, 16, 2}},
        {"s16x2", {Kind::sign, 16, 2}},
    };
    auto found = types->find(word);
    return found == types->end() ? Type{} : found->second;
}

} // namespace vgpu::ptx
