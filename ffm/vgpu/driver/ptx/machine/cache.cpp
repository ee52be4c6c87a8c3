#include "cache.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "foundation/configuration.h"

namespace vgpu::ptx
{

namespace
{

struct Header {
    char magic[8];
    std::uint64_t size;  /* of the object file behind this header */
    std::uint64_t check; /* the object file's hash */
    std::uint64_t text;  /* a second hash of the source text */
};
constexpr char magic[8] = {'v', 'g', 'p', 'u', 'o', 'b', 'j', '1'};

/* A multiplicative hash over words of 8 bytes, mixed at the end as in MurmurHash3's finalizer. */
std::uint64_t hash(const std::string &bytes, std::uint64_t seed)
{
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
    std::uint64_t state = seed ^ bytes.size();
    for (std::size_t place = 0; place < bytes.size(); place += sizeof state) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + place, std::min(sizeof word, bytes.size() - place));
        state = (state ^ word) * factor;
        state ^= state >> 29;
    }
    state = (state ^ state >> 33) * 0xff51afd7ed558ccd;
    return state ^ state >> 33;
}

/* What /proc/cpuinfo says of the first processor. Compiled code fits only processors with the same instructions. */
const std::string &processor()
{
    static const std::string *text = [] {
        std::ifstream file("/proc/cpuinfo");
        auto *lines = new std::string;
        for (std::string line; std::getline(file, line) && !line.empty();)
            if (line.rfind("flags", 0) == 0 || line.rfind("model", 0) == 0 || line.rfind("vendor", 0) == 0)
                *lines += line;
        return lines;
    }();
    return *text;
}

/* Creates the folder if it is missing. Returns false if other users have access to it. */
bool usable(const std::string &folder)
{
    mkdir(folder.c_str(), 0700);
    struct stat status;
    return stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0;
}

/* The cache's folder; empty if nothing is to be cached. */
std::string folder()
{
    const std::string &named = configuration().cache;
    if (named == "none")
        return "";
    if (!named.empty())
        return usable(named) ? named : "";
    const char *base = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
    std::string parent = base && *base == '/' ? base : home && *home == '/' ? std::string(home) + "/.cache" : "";
    if (parent.empty())
        return "";
    mkdir(parent.c_str(), 0700);
    std::string own = parent + "/ffm-vgpu";
    return usable(own) ? own : "";
}

std::string path_of(const std::string &assembly)
{
    std::string where = folder();
    if (where.empty())
        return "";
    char name[48];
    std::snprintf(name, sizeof name, "/%016llx%016llx.o",
                  static_cast<unsigned long long>(hash(assembly, hash(processor(), 1))),
                  static_cast<unsigned long long>(hash(assembly, hash(processor(), 2))));
    return where + name;
}

} // namespace

bool find_compiled(const std::string &assembly, std::string &object)
{
    std::string path = path_of(assembly);
    std::ifstream file(path, std::ios::binary);
    Header header;
    if (path.empty() || !file.read(reinterpret_cast<char *>(&header), sizeof header) ||
        std::memcmp(header.magic, magic, sizeof magic) != 0 || header.text != hash(assembly, 3))
        return false;
    std::ostringstream rest;
    rest << file.rdbuf();
    object = rest.str();
    return object.size() == header.size && hash(object, 4) == header.check;
}

void keep_compiled(const std::string &assembly, const std::string &object)
{
    std::string path = path_of(assembly);
    if (path.empty())
        return;
    std::string fresh = path + "." + std::to_string(getpid());
    Header header = {{}, object.size(), hash(object, 4), hash(assembly, 3)};
    std::memcpy(header.magic, magic, sizeof magic);
    std::ofstream file(fresh, std::ios::binary);
    file.write(reinterpret_cast<const char *>(&header), sizeof header);
    file.write(object.data(), static_cast<std::streamsize>(object.size()));
    file.close();
    if (!file || std::rename(fresh.c_str(), path.c_str()) != 0)
        unlink(fresh.c_str());
}

} // namespace vgpu::ptx
