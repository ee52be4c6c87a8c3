#include "foundation/configuration.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace vgpu
{

namespace
{

Configuration current;

/* The settings of a file, before `speed` is applied. */
struct Settings : Configuration {
    double speed = 1;
};
constexpr double smallest_speed = 1e-6;

/* The largest accepted number, in any unit. It is more than any machine needs: a kernel of a quarter of an hour, a
 * terabyte per nanosecond. */
constexpr double largest = 1e9;

/* As many as a process sees on NVIDIA's largest machines. */
constexpr int most_devices = 16;

struct Number {
    const char *key;
    double Configuration::*value;
    double minimum;
};

const Number numbers[] = {
    {"device.memory", &Configuration::device_memory, 0.001},
    {"device.multiprocessors", &Configuration::multiprocessors, 1},
    {"device.pageable_memory_access", &Configuration::pageable_memory_access, 0},
    {"device.time_limit", &Configuration::time_limit, 0},
    {"copy.host_to_device.pinned", &Configuration::host_to_device_pinned, 1e-6},
    {"copy.device_to_host.pinned", &Configuration::device_to_host_pinned, 1e-6},
    {"copy.host_to_device.staged", &Configuration::host_to_device_staged, 1e-6},
    {"copy.device_to_host.staged", &Configuration::device_to_host_staged, 1e-6},
    {"copy.device_to_device", &Configuration::device_to_device, 1e-6},
    {"copy.peer", &Configuration::peer, 1e-6},
    {"copy.set", &Configuration::set, 1e-6},
    {"copy.latency", &Configuration::copy_latency, 0},
    {"copy.staging_size", &Configuration::staging_size, 0.001},
    {"copy.staging_chunk", &Configuration::staging_chunk, 0.001},
    {"start.latency", &Configuration::start_latency, 0},
    {"start.gap", &Configuration::start_gap, 0},
    {"wait.latency", &Configuration::wait_latency, 0},
    {"call.launch", &Configuration::call_launch, 0},
    {"call.copy", &Configuration::call_copy, 0},
    {"call.read_back", &Configuration::call_read_back, 0},
    {"call.set", &Configuration::call_set, 0},
    {"call.synchronize", &Configuration::call_synchronize, 0},
    {"call.event", &Configuration::call_event, 0},
    {"memory.pinned_offset", &Configuration::pinned_offset, 0},
    {"context.waits", &Configuration::context_waits, 0},
    {"event.time", &Configuration::event_time, 0},
    {"call.allocate", &Configuration::call_allocate, 0},
    {"call.free", &Configuration::call_free, 0},
    {"call.allocate_host", &Configuration::call_allocate_host, 0},
    {"call.free_host", &Configuration::call_free_host, 0},
    {"call.register_host", &Configuration::call_register_host, 0},
    {"call.allocate_pool", &Configuration::call_allocate_pool, 0},
    {"call.free_pool", &Configuration::call_free_pool, 0},
    {"call.create_context", &Configuration::call_create_context, 0},
    {"call.load_kernel", &Configuration::call_load_kernel, 0},
    {"call.compile", &Configuration::call_compile, 0},
    {"log.refused", &Configuration::log_refused, 0},
};

std::string trimmed(const std::string &text)
{
    const char *blanks = " \t\r";
    std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string::npos)
        return "";
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/* Reads a number at `cursor`, and moves past it and the spaces after it. Returns false if there is no number, or if
 * it is too large. */
bool read_number(const char *&cursor, double &value)
{
    char *end = nullptr;
    value = std::strtod(cursor, &end);
    if (end == cursor || !(std::abs(value) <= largest))
        return false;
    cursor = end + std::strspn(end, " \t");
    return true;
}

/* Stores the number. Returns the reason if the text is not a number in the range. */
std::string read_at_least(const std::string &text, double minimum, double &target)
{
    const char *cursor = text.c_str();
    double parsed;
    if (!read_number(cursor, parsed) || *cursor != '\0' || !(parsed >= minimum))
        return "'" + text + "' is not a number from " + std::to_string(minimum) + " to " + std::to_string(largest);
    target = parsed;
    return "";
}

bool begins_with(const char *key, const char *prefix)
{
    return std::strncmp(key, prefix, std::strlen(prefix)) == 0;
}

/* Applies `speed` to all times and bandwidths alike, so that their proportions stay the same. */
void stretch(Settings &target)
{
    for (const Number &number : numbers) {
        double &value = target.*(number.value);
        if (begins_with(number.key, "call.") || begins_with(number.key, "start.") || begins_with(number.key, "wait.") ||
            begins_with(number.key, "copy.latency"))
            value /= target.speed;
        else if (begins_with(number.key, "copy.") &&
                 !begins_with(number.key, "copy.staging_")) /* staging settings are sizes */
            value *= target.speed;
    }
    auto stretch_kernel = [&target](KernelDuration &duration) {
        duration.fixed_microseconds /= target.speed;
        duration.nanoseconds_per_thread /= target.speed;
    };
    stretch_kernel(target.default_kernel);
    for (auto &kernel : target.kernels)
        stretch_kernel(kernel.second);
}

/* Reads "FIXED" in microseconds, or "FIXED + RATE per thread" with the rate in nanoseconds. */
bool read_kernel_duration(const std::string &text, KernelDuration &duration)
{
    const char *cursor = text.c_str();
    duration = {0, 0};
    if (!read_number(cursor, duration.fixed_microseconds) || duration.fixed_microseconds < 0)
        return false;
    if (*cursor == '\0')
        return true;
    if (*cursor++ != '+')
        return false;
    return read_number(cursor, duration.nanoseconds_per_thread) && duration.nanoseconds_per_thread >= 0 &&
           std::strcmp(cursor, "per thread") == 0;
}

/* Stores the value that the name stands for. Returns the reason if the name is unknown. */
template <typename Choice>
std::string read_choice(const std::string &value, const std::map<std::string, Choice> &choices, Choice &target)
{
    auto found = choices.find(value);
    if (found != choices.end()) {
        target = found->second;
        return "";
    }
    std::string names;
    for (const auto &choice : choices)
        names += (names.empty() ? "'" : ", '") + choice.first + "'";
    return "'" + value + "' is none of " + names;
}

/* Stores one setting. Returns an empty text, or the reason if that fails. */
std::string apply(Settings &target, const std::string &key, const std::string &value)
{
    if (key == "device.name") {
        target.device_name = value;
        return "";
    }
    if (key == "devices") {
        const char *cursor = value.c_str();
        double count;
        if (!read_number(cursor, count) || *cursor != '\0' || !(count >= 1 && count <= most_devices) ||
            count != static_cast<int>(count))
            return "'" + value + "' is no whole number from 1 to " + std::to_string(most_devices);
        target.devices = static_cast<int>(count);
        return "";
    }
    if (key == "device.code") {
        static const std::map<std::string, DeviceCode> ways = {{"run", DeviceCode::run},
                                                               {"run or pass", DeviceCode::run_or_pass},
                                                               {"pass", DeviceCode::pass},
                                                               {"refuse", DeviceCode::refuse}};
        return read_choice(value, ways, target.device_code);
    }
    if (key == "device.time") {
        static const std::map<std::string, DeviceTime> ways = {{"model", DeviceTime::model},
                                                               {"measured", DeviceTime::measured}};
        return read_choice(value, ways, target.device_time);
    }
    if (key == "device.llvm" || key == "device.cache") {
        (key == "device.llvm" ? target.llvm : target.cache) = value;
        return "";
    }
    if (key.rfind("kernel.", 0) == 0) {
        KernelDuration duration;
        if (!read_kernel_duration(value, duration))
            return "a kernel's duration is 'MICROSECONDS + NANOSECONDS per thread', not '" + value + "'";
        std::string name = key.substr(std::strlen("kernel."));
        if (name == "default")
            target.default_kernel = duration;
        else
            target.kernels[name] = duration;
        return "";
    }
    if (key == "speed")
        return read_at_least(value, smallest_speed, target.speed);
    for (const Number &number : numbers) {
        if (key == number.key)
            return read_at_least(value, number.minimum, target.*(number.value));
    }
    return "unknown key '" + key + "'";
}

std::string file_beside_executable()
{
    std::error_code unreadable;
    std::string path = std::filesystem::read_symlink("/proc/self/exe", unreadable).string();
    if (unreadable)
        return "";
    std::string name = path + ".vgpu";
    return access(name.c_str(), R_OK) == 0 ? name : "";
}

} // namespace

Nanoseconds KernelDuration::of(double threads) const
{
    return nanoseconds(fixed_microseconds * 1e3 + nanoseconds_per_thread * threads);
}

KernelDuration Configuration::kernel(const std::string &name) const
{
    auto found = kernels.find(name);
    return found == kernels.end() ? default_kernel : found->second;
}

bool load_configuration(std::string &error)
{
    const char *named = std::getenv("VGPU_CONFIGURATION");
    std::string path = named ? named : file_beside_executable();
    if (path.empty())
        return true;
    std::ifstream file(path);
    if (!file) {
        error = path + ": cannot be read";
        return false;
    }
    Settings loaded;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty())
            continue;
        std::size_t equals = line.find('=');
        std::string cause = equals == std::string::npos
                                ? "expected 'key = value'"
                                : apply(loaded, trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
        if (!cause.empty()) {
            error = path + ":" + std::to_string(number) + ": " + cause;
            return false;
        }
    }
    stretch(loaded);
    current = loaded;
    return true;
}

const Configuration &configuration()
{
    return current;
}

} // namespace vgpu
