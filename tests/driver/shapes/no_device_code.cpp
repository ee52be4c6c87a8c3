/* In the place of `driver/ptx`: a driver's shape is looked at and waited in, but runs no device code. */
#include "ptx/machine/compiler.h"
#include "ptx/program.h"

namespace vgpu::ptx
{

static const char reason[] = "this build of the driver has no device code";

std::string missing_compiler()
{
    return reason;
}

CUresult run(const Code &, const LaunchShape &, const Arguments &, double, std::string &)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

Object::~Object() = default;

Program::Program(const std::string &)
{
    throw Error(reason);
}

void Program::describe(CodeContents &) const {}

std::vector<std::uint64_t> Program::place(const std::map<std::string, std::uint64_t> &, bool) const
{
    throw Error(reason);
}

const Code &Program::code(const std::string &)
{
    throw Error(reason);
}

KernelProperties Program::properties(const std::string &) const
{
    throw Error(reason);
}

} // namespace vgpu::ptx
