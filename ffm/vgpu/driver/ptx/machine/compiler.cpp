#include "compiler.h"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

#include "../syntax/syntax.h"
#include "foundation/configuration.h"

namespace vgpu::ptx
{

namespace
{

/* From the driver's folder, which is `ffm/vgpu/lib` in an installation, to the package beside `ffm`. */
constexpr const char *beside = "/../../../llvmlite/binding/libllvmlite.so";
constexpr unsigned oldest_llvm = 20; /* the first version with minimumnum on x86-64 */

/* The functions of llvmlite that are used here. `llvmlite/binding` has their names. */
struct Library {
    void *handle = nullptr;
    std::string path;
    std::string cause; /* why the library cannot be used */

    void *(*create_context)() = nullptr;
    void (*dispose_context)(void *) = nullptr;
    void *(*parse)(void *, const char *, const char **) = nullptr;
    bool (*verify)(void *, const char **) = nullptr;
    void (*dispose_module)(void *) = nullptr;
    void *(*target_from_triple)(const char *, const char **) = nullptr;
    void *(*create_machine)(void *, const char *, const char *, const char *, int, const char *, const char *, int, int,
                            const char *) = nullptr;
    void (*dispose_machine)(void *) = nullptr;
    void *(*emit)(void *, void *, int, const char **) = nullptr;
    const char *(*buffer_start)(void *) = nullptr;
    std::size_t (*buffer_size)(void *) = nullptr;
    void (*dispose_buffer)(void *) = nullptr;
    void *(*create_options)() = nullptr;
    void (*dispose_options)(void *) = nullptr;
    void *(*create_builder)(void *, void *) = nullptr;
    void (*dispose_builder)(void *) = nullptr;
    void *(*default_pipeline)(void *, int) = nullptr;
    void (*run_passes)(void *, void *, void *) = nullptr;
    void (*dispose_passes)(void *) = nullptr;
    int (*host_features)(const char **) = nullptr;
    void (*host_name)(const char **) = nullptr;
    void (*dispose_string)(const char *) = nullptr;
    unsigned (*version)() = nullptr;
    void (*initialize_target)() = nullptr;
    void (*initialize_printer)() = nullptr;
};

/* The library beside the driver's own file. */
std::string default_path()
{
    Dl_info driver;
    if (!dladdr(reinterpret_cast<void *>(&compile), &driver) || !driver.dli_fname)
        return "";
    std::string file = driver.dli_fname;
    char *real = realpath(file.c_str(), nullptr);
    if (real) {
        file = real;
        std::free(real);
    }
    return file.substr(0, file.rfind('/')) + beside;
}

std::string library_path()
{
    const char *environment = std::getenv("VGPU_LLVM");
    std::string named = environment && *environment ? environment : configuration().llvm;
    return named.empty() ? default_path() : named;
}

template <typename Function> bool bind(Library &library, Function &function, const char *name)
{
    function = reinterpret_cast<Function>(dlsym(library.handle, name));
    if (!function)
        library.cause = library.path + " has no " + name;
    return function != nullptr;
}

bool bind_all(Library &l)
{
    return bind(l, l.create_context, "LLVMPY_ContextCreate") && bind(l, l.dispose_context, "LLVMPY_ContextDispose") &&
           bind(l, l.parse, "LLVMPY_ParseAssembly") && bind(l, l.verify, "LLVMPY_VerifyModule") &&
           bind(l, l.dispose_module, "LLVMPY_DisposeModule") &&
           bind(l, l.target_from_triple, "LLVMPY_GetTargetFromTriple") &&
           bind(l, l.create_machine, "LLVMPY_CreateTargetMachine") &&
           bind(l, l.dispose_machine, "LLVMPY_DisposeTargetMachine") &&
           bind(l, l.emit, "LLVMPY_TargetMachineEmitToMemory") && bind(l, l.buffer_start, "LLVMPY_GetBufferStart") &&
           bind(l, l.buffer_size, "LLVMPY_GetBufferSize") && bind(l, l.dispose_buffer, "LLVMPY_DisposeMemoryBuffer") &&
           bind(l, l.create_options, "LLVMPY_CreatePipelineTuningOptions") &&
           bind(l, l.dispose_options, "LLVMPY_DisposePipelineTuningOptions") &&
           bind(l, l.create_builder, "LLVMPY_CreatePassBuilder") &&
           bind(l, l.dispose_builder, "LLVMPY_DisposePassBuilder") &&
           bind(l, l.default_pipeline, "LLVMPY_buildPerModuleDefaultPipeline") &&
           bind(l, l.run_passes, "LLVMPY_RunNewModulePassManager") &&
           bind(l, l.dispose_passes, "LLVMPY_DisposeNewModulePassManger") &&
           bind(l, l.host_features, "LLVMPY_GetHostCPUFeatures") && bind(l, l.host_name, "LLVMPY_GetHostCPUName") &&
           bind(l, l.dispose_string, "LLVMPY_DisposeString") && bind(l, l.version, "LLVMPY_GetVersionInfo") &&
           bind(l, l.initialize_target, "LLVMPY_InitializeNativeTarget") &&
           bind(l, l.initialize_printer, "LLVMPY_InitializeNativeAsmPrinter");
}

Library open_library()
{
    Library library;
    library.path = library_path();
    library.handle = dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library.handle) {
        const char *error = dlerror();
        library.cause = error ? error : "it cannot be loaded";
        return library;
    }
    if (!bind_all(library))
        return library;
    unsigned major = library.version() >> 16;
    if (major < oldest_llvm) {
        library.cause = library.path + " holds LLVM " + std::to_string(major) + "; " + std::to_string(oldest_llvm) +
                        " or newer is needed";
        return library;
    }
    library.initialize_target();
    library.initialize_printer();
    return library;
}

const Library &library()
{
    static const Library *opened = new Library(open_library());
    return *opened;
}

/* Copies a string that the library allocated, and frees it. */
std::string taken(const char *text)
{
    std::string copied = text ? text : "";
    if (text)
        library().dispose_string(text);
    return copied;
}

/* A module in a context of its own. Both end with this object. */
class ParsedModule
{
  public:
    explicit ParsedModule(const std::string &assembly) : context_(library().create_context())
    {
        const char *message = nullptr;
        module_ = library().parse(context_, assembly.c_str(), &message);
        if (!module_) {
            library().dispose_context(context_);
            throw Error("LLVM refuses the translation: " + taken(message));
        }
    }
    ~ParsedModule()
    {
        library().dispose_module(module_);
        library().dispose_context(context_);
    }
    ParsedModule(const ParsedModule &) = delete;
    ParsedModule &operator=(const ParsedModule &) = delete;

    void *get() const
    {
        return module_;
    }

  private:
    void *context_;
    void *module_;
};

void *create_machine()
{
    const char *triple = "x86_64-unknown-linux-gnu", *message = nullptr, *name = nullptr, *features = nullptr;
    void *target = library().target_from_triple(triple, &message);
    if (!target)
        throw Error("LLVM has no target for this processor: " + taken(message));
    library().host_name(&name);
    library().host_features(&features);
    return library().create_machine(target, triple, taken(name).c_str(), taken(features).c_str(), 2, "pic", "small", 0,
                                    0, "");
}

void optimize(void *machine, void *module)
{
    constexpr int level = 2;
    void *options = library().create_options();
    void *builder = library().create_builder(machine, options);
    void *passes = library().default_pipeline(builder, level);
    library().run_passes(passes, module, builder);
    library().dispose_passes(passes);
    library().dispose_builder(builder);
    library().dispose_options(options);
}

/* Before LLVM 22, coro.end returned a value. */
std::string for_version(std::string assembly, unsigned major)
{
    if (major >= 22)
        return assembly;
    const std::pair<std::string, std::string> forms[] = {
        {"declare void @llvm.coro.end(", "declare i1 @llvm.coro.end("},
        {"  call void @llvm.coro.end(", "  %thread.ended = call i1 @llvm.coro.end("},
    };
    for (const auto &form : forms) {
        std::size_t place = assembly.find(form.first);
        if (place != std::string::npos)
            assembly.replace(place, form.first.size(), form.second);
    }
    return assembly;
}

std::string missing(const std::string &cause)
{
    return "device code needs LLVM, and there is none: " + cause +
           "; install llvmlite beside ffm, or name its libllvmlite.so in VGPU_LLVM or `device.llvm`";
}

} // namespace

std::string missing_compiler()
{
    std::string path = library_path();
    return access(path.c_str(), R_OK) == 0 ? "" : missing(path + " cannot be read");
}

std::string compile(const std::string &assembly)
{
    if (!library().cause.empty())
        throw Error(missing(library().cause));
    ParsedModule module(for_version(assembly, library().version() >> 16));
    void *machine = create_machine();
    optimize(machine, module.get());
    const char *message = nullptr;
    void *buffer = library().emit(machine, module.get(), 1, &message);
    library().dispose_machine(machine);
    if (!buffer)
        throw Error("LLVM makes no code of the translation: " + taken(message));
    std::string object(library().buffer_start(buffer), library().buffer_size(buffer));
    library().dispose_buffer(buffer);
    return object;
}

} // namespace vgpu::ptx
