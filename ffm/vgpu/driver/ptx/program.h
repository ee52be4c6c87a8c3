/* A PTX module that can be run: each kernel is compiled when it is first launched. */
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "code_contents.h"
#include "execution/launch.h"
#include "machine/object.h"
#include "syntax/syntax.h"

namespace vgpu::ptx
{

/* What can be said of a kernel without compiling it. */
struct KernelProperties {
    std::size_t shared_size = 0; /* bytes of static shared variables */
    std::size_t local_size = 0;
    std::size_t constant_size = 0;
    std::uint32_t maximum_threads = 1024;
};

class Program
{
  public:
    /* Throws Error for text that is no PTX. */
    explicit Program(const std::string &text);

    /* Lists kernels with their parameters, and variables. */
    void describe(CodeContents &contents) const;

    /* Writes the variables' first values to their addresses, and returns the addresses in the order in which code knows
     * the variables. `with_managed` is false where the managed ones, which all devices share, have their values
     * already. Throws Error for values that are not implemented. */
    std::vector<std::uint64_t> place(const std::map<std::string, std::uint64_t> &addresses, bool with_managed) const;

    /* The kernel, compiled. Throws Error, always the same, where it cannot be. */
    const Code &code(const std::string &kernel);

    KernelProperties properties(const std::string &kernel) const;

  private:
    struct Kernel {
        std::unique_ptr<Object> object;
        Code code;
        std::string error; /* why there is no object */
    };

    void build(const std::string &name, Kernel &kernel);

    Module module_;
    std::mutex mutex_;
    std::map<std::string, Kernel> kernels_;
};

} // namespace vgpu::ptx
