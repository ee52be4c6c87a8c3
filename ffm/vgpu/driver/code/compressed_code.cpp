#include "compressed_code.h"

#include <cstdio>
#include <dlfcn.h>

namespace vgpu
{

namespace
{

/* The library is opened at run time. Only compressed code needs it, and not every machine has it. */
void *function_of(const char *library, const char *name)
{
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *function = opened ? dlsym(opened, name) : nullptr;
    if (!function)
        std::fprintf(stderr, "virtual GPU: the device code is compressed, and there is no %s in %s\n", name, library);
    return function;
}

/* LZ4_decompress_safe (lz4.h) returns the number of bytes written, or a negative number for damaged input. */
bool decompress_lz4(const char *bytes, std::size_t size, std::string &plain)
{
    using Function = int (*)(const char *, char *, int, int);
    static const auto function = reinterpret_cast<Function>(function_of("liblz4.so.1", "LZ4_decompress_safe"));
    return function && function(bytes, plain.data(), static_cast<int>(size), static_cast<int>(plain.size())) ==
                           static_cast<int>(plain.size());
}

/* ZSTD_decompress (zstd.h) returns the number of bytes written. Error codes are larger than any size. */
bool decompress_zstandard(const char *bytes, std::size_t size, std::string &plain)
{
    using Function = std::size_t (*)(void *, std::size_t, const void *, std::size_t);
    static const auto function = reinterpret_cast<Function>(function_of("libzstd.so.1", "ZSTD_decompress"));
    return function && function(plain.data(), plain.size(), bytes, size) == plain.size();
}

} // namespace

bool decompress(Compression compression, const char *bytes, std::size_t size, std::string &plain)
{
    return compression == Compression::lz4 ? decompress_lz4(bytes, size, plain)
                                           : decompress_zstandard(bytes, size, plain);
}

} // namespace vgpu
