/* Texture fetches, surface loads and surface stores (PTX ISA, "Texture Instructions" and "Surface Instructions").
 * Not supported are mipmap levels, gathering and formatted stores. */
#include "../execution/image_axes.h"
#include "emitter.h"

namespace vgpu::ptx
{

namespace
{

/* The axes and layers that a modifier names: `2d`, `a2d`, `acube`. Other words have no axes. */
struct Geometry {
    int dimensions = 0;
    bool layered = false;
    bool cube = false; /* a direction selects the face and the place */
};

Geometry geometry_of(const std::string &word)
{
    if (word == "1d" || word == "2d" || word == "3d")
        return {word[0] - '0', false};
    if (word == "a1d" || word == "a2d")
        return {word[1] - '0', true};
    if (word == "cube" || word == "acube")
        return {3, word[0] == 'a', true};
    return {};
}

} // namespace

/* The arguments of the driver's functions: the object, the number of axes, the coordinates and the layer. */
std::string Emitter::image_arguments(const Instruction &instruction, const Operand &image, Type coordinate)
{
    Geometry geometry = geometry_of(instruction.words.at(instruction.words[0] == "tex" ? 1 : 2));
    bool of_surface = instruction.words[0] != "tex";
    if (geometry.dimensions == 0 || image.members.size() != 1 || (of_surface && geometry.cube))
        unsupported(instruction);
    const std::vector<Operand> given =
        image.members[0].form == Operand::Form::vector ? image.members[0].members : image.members;
    std::size_t first = geometry.layered ? 1 : 0, count = static_cast<std::size_t>(geometry.dimensions);
    if (given.size() < first + count)
        unsupported(instruction, "coordinates are missing");
    std::string text = "ptr %block, ptr %thread, i64 " + unchecked_address(image) + ", i32 " +
                       std::to_string(geometry.cube ? image_of_faces : geometry.dimensions);
    for (std::size_t axis = 0; axis < 3; ++axis)
        text += ", i32 " + (axis < count ? cast(read(given[first + axis], coordinate), coordinate.llvm(), "i32") : "0");
    return text + ", i32 " + (geometry.layered ? read(given[0], bits_type(32)) : "0");
}

void Emitter::fetch_texture(const Instruction &instruction)
{
    Type result = type(instruction, 1), coordinate = type(instruction);
    const Operand &target = operand(instruction, 0);
    if (result.width() != 32 || result.lanes != 1 || coordinate.width() != 32 || instruction.operands.size() != 2 ||
        target.form != Operand::Form::vector || target.members.size() > 4)
        unsupported(instruction);
    std::string arguments = image_arguments(instruction, operand(instruction, 1), coordinate);
    call("void", "vgpu_fetch_texture", arguments + ", i32 " + (coordinate.is_float() ? "1" : "0") + ", ptr %image");
    for (std::size_t channel = 0; channel < target.members.size(); ++channel) {
        std::string place = operation("getelementptr i32, ptr %image, i64 " + std::to_string(channel));
        write(target.members[channel], result, cast(operation("load i32, ptr " + place), "i32", result.llvm()));
    }
}

void Emitter::access_surface(const Instruction &instruction)
{
    bool loads = instruction.words[0] == "suld";
    const Operand &image = operand(instruction, loads ? 1 : 0), &listed = operand(instruction, loads ? 0 : 1);
    const std::vector<Operand> values =
        listed.form == Operand::Form::vector ? listed.members : std::vector<Operand>{listed};
    const std::string &outside = instruction.words.back();
    Type kind = type_of(instruction.words[instruction.words.size() - 2]);
    if (instruction.words[1] != "b" || kind.kind != Kind::bits ||
        (outside != "trap" && outside != "clamp" && outside != "zero"))
        unsupported(instruction);
    int bytes = kind.bytes() * static_cast<int>(values.size());
    std::string arguments = image_arguments(instruction, image, bits_type(32)) + ", i32 " + std::to_string(bytes) +
                            ", i32 " +
                            (outside == "trap"    ? "0"
                             : outside == "clamp" ? "1"
                                                  : "2");
    /* Outside the surface, loads read zeros from `%image`, and stores to it are lost. */
    line("store i128 0, ptr %image");
    std::string base = call("ptr", "vgpu_surface_texel", arguments + ", ptr %image");
    for (std::size_t index = 0; index < values.size(); ++index) {
        std::string place =
            operation("getelementptr " + kind.integer() + ", ptr " + base + ", i64 " + std::to_string(index));
        if (loads)
            write(values[index], kind, operation("load " + kind.integer() + ", ptr " + place));
        else
            line("store " + kind.integer() + " " + read(values[index], kind) + ", ptr " + place);
    }
}

void Emitter::add_textures(std::map<std::string, Handler> &handlers)
{
    handlers["tex"] = &Emitter::fetch_texture;
    handlers["suld"] = handlers["sust"] = &Emitter::access_surface;
}

} // namespace vgpu::ptx
