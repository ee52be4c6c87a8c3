#include "program.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>

#include "device_runtime.h"
#include "foundation/device_limits.h"
#include "machine/cache.h"
#include "machine/compiler.h"
#include "translation/indirect.h"

namespace vgpu::ptx
{

namespace
{

/* Whether the variable lies in device memory. */
bool in_memory(const Variable &variable)
{
    return variable.space == Space::global || variable.space == Space::constant;
}

/* The most threads of a block that the kernel was compiled for. */
std::uint32_t maximum_threads(const Function &kernel)
{
    std::uint32_t required = kernel.required_threads[0] * kernel.required_threads[1] * kernel.required_threads[2];
    return required > 0 ? required : kernel.maximum_threads > 0 ? kernel.maximum_threads : threads_per_block;
}

/* Compiles on a thread of the driver's own. The program's thread may have a small stack, or a tool may watch each of
 * its instructions. */
std::string compile_aside(const std::string &assembly)
{
    std::string object, cause;
    sigset_t all, previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    std::thread compiling([&] {
        pthread_setname_np(pthread_self(), "vgpu-compile");
        try {
            object = compile(assembly);
        } catch (const std::exception &error) {
            cause = error.what();
        }
    });
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    compiling.join();
    if (!cause.empty())
        throw Error(cause);
    keep_compiled(assembly, object);
    return object;
}

} // namespace

Program::Program(const std::string &text) : module_(parse(text))
{
    add_device_runtime(module_);
}

void Program::describe(CodeContents &contents) const
{
    for (const std::string &name : module_.order) {
        const Function &function = module_.functions.at(name);
        if (!function.entry)
            continue;
        CodeKernel kernel{name, {}};
        std::size_t place = 0;
        for (const Variable &parameter : function.parameters) {
            place = (place + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
            kernel.parameters.push_back(
                {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(parameter.size)});
            place += parameter.size;
        }
        contents.kernels.push_back(kernel);
    }
    for (const Variable &variable : module_.variables)
        if (in_memory(variable) && variable.size > 0)
            contents.variables.push_back({variable.name, variable.size, variable.managed});
}

std::vector<std::uint64_t> Program::place(const std::map<std::string, std::uint64_t> &addresses,
                                          bool with_managed) const
{
    std::vector<std::uint64_t> table;
    for (const Variable &variable : module_.variables) {
        if (!in_memory(variable))
            continue;
        auto found = addresses.find(variable.name);
        table.push_back(found == addresses.end() ? 0 : found->second);
        if (variable.managed && !with_managed)
            continue;
        for (const Initializer &initial : variable.initializers) {
            std::uint64_t value = initial.value;
            if (!initial.symbol.empty()) {
                auto target = addresses.find(initial.symbol);
                std::uint64_t start =
                    target == addresses.end() ? function_address(module_, initial.symbol) : target->second;
                if (start == 0)
                    throw Error("the variable " + variable.name + " holds the address of " + initial.symbol +
                                ", which is not implemented");
                value += start;
            }
            if (initial.byte >= 0)
                value = value >> (8 * initial.byte) & 0xff;
            std::memcpy(reinterpret_cast<char *>(table.back()) + initial.offset, &value,
                        std::min(initial.size, sizeof value));
        }
    }
    return table;
}

void Program::build(const std::string &name, Kernel &kernel)
{
    Unit unit = unit_of(module_, name);
    Translation translation = translate(unit);
    const std::string &assembly = translation.assembly;
    std::string object;
    if (find_compiled(assembly, object)) {
        try {
            kernel.object = std::make_unique<Object>(object);
        } catch (const Error &) { /* it is compiled again */
        }
    }
    if (!kernel.object)
        kernel.object = std::make_unique<Object>(compile_aside(assembly));
    void *entry = kernel.object->find("vgpu_entry");
    if (!entry)
        throw Error("compiled code without an entry");
    kernel.code.name = name;
    kernel.code.entry = reinterpret_cast<Code::Entry>(entry);
    kernel.code.schedule = unit.schedule;
    kernel.code.regions = reinterpret_cast<Code::Regions>(entry);
    kernel.code.points = translation.points;
    kernel.code.frame_size = translation.frame_size;
    if (unit.schedule == Schedule::coroutines) {
        Block block{};
        Thread thread{};
        kernel.code.entry(&block, &thread); /* stores the size of its frame in `thread` */
        kernel.code.frame_size = thread.frame_size;
    }
    kernel.code.shared_size = unit.shared_size;
    kernel.code.local_size = unit.local_size;
    kernel.code.maximum_threads = maximum_threads(*unit.kernel);
    std::copy_n(unit.kernel->required_threads, 3, kernel.code.required_threads);
}

const Code &Program::code(const std::string &name)
{
    std::lock_guard<std::mutex> lock(mutex_);
    Kernel &kernel = kernels_[name];
    if (!kernel.object && kernel.error.empty()) {
        try {
            build(name, kernel);
        } catch (const Error &error) {
            kernel.error = error.what();
            kernel.object.reset();
        }
    }
    if (!kernel.error.empty())
        throw Error(kernel.error);
    return kernel.code;
}

KernelProperties Program::properties(const std::string &name) const
{
    KernelProperties properties;
    auto found = module_.functions.find(name);
    if (found == module_.functions.end() || !found->second.entry)
        return properties;
    const Function &kernel = found->second;
    properties.maximum_threads = maximum_threads(kernel);
    Unit unit = unit_of(module_, name);
    properties.shared_size = unit.static_shared;
    properties.local_size = unit.local_size;
    for (const Variable &variable : module_.variables)
        if (variable.space == Space::constant)
            properties.constant_size += variable.size;
    return properties;
}

} // namespace vgpu::ptx
