#include "devices.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "configuration.h"

namespace vgpu
{

namespace
{

/* The machine's numbers of the visible devices. */
std::vector<int> visible;

CUuuid uuid_on_machine(int number)
{
    CUuuid uuid = {{'v', 'g', 'p', 'u', static_cast<char>(number), 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6}};
    return uuid;
}

/* The UUID as nvidia-smi prints it: GPU-76677075-0001-0002-0003-000400050006. */
std::string name_of(const CUuuid &uuid)
{
    std::string name = "GPU-";
    for (std::size_t index = 0; index < sizeof uuid.bytes; ++index) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[index]));
        name += digits;
        if (index == 3 || index == 5 || index == 7 || index == 9)
            name += '-';
    }
    return name;
}

/* The only device whose UUID begins so; -1 if there are none or several. */
int find_by_uuid(const std::string &beginning)
{
    int found = -1;
    for (int number = 0; number < configuration().devices; ++number) {
        if (name_of(uuid_on_machine(number)).compare(0, beginning.size(), beginning) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = number;
    }
    return found;
}

/* What an element of the list names, on the machine; -1 if it names no device. Text behind a number is ignored, as
 * PyTorch found NVIDIA's driver to do (torch/cuda/__init__.py, _parse_visible_devices). */
int find_device(const std::string &identifier)
{
    if (identifier.rfind("GPU-", 0) == 0)
        return find_by_uuid(identifier);
    char *end = nullptr;
    const long number = std::strtol(identifier.c_str(), &end, 10);
    return end != identifier.c_str() && number >= 0 && number < configuration().devices ? static_cast<int>(number) : -1;
}

std::string without_blanks(const std::string &text)
{
    const std::size_t first = text.find_first_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/* The devices that the list names up to the first element that names none. A list that names a device twice names
 * none at all: NVIDIA does not document this; PyTorch does (see above). */
std::vector<int> devices_of(const char *list)
{
    std::vector<int> result;
    std::istringstream elements(list);
    std::string element;
    while (std::getline(elements, element, ',')) {
        const int number = find_device(without_blanks(element));
        if (number < 0)
            break;
        if (std::count(result.begin(), result.end(), number) > 0)
            return {};
        result.push_back(number);
    }
    return result;
}

} // namespace

bool find_visible_devices()
{
    visible.clear();
    if (const char *list = std::getenv("CUDA_VISIBLE_DEVICES")) {
        visible = devices_of(list);
    } else {
        for (int number = 0; number < configuration().devices; ++number)
            visible.push_back(number);
    }
    return !visible.empty();
}

int visible_devices()
{
    return static_cast<int>(visible.size());
}

bool is_device(CUdevice device)
{
    return device >= 0 && device < visible_devices();
}

int number_on_machine(CUdevice device)
{
    return visible[static_cast<std::size_t>(device)];
}

CUdevice number_in_process(int number)
{
    const auto found = std::find(visible.begin(), visible.end(), number);
    return found == visible.end() ? -1 : static_cast<CUdevice>(found - visible.begin());
}

CUuuid uuid_of(CUdevice device)
{
    return uuid_on_machine(number_on_machine(device));
}

} // namespace vgpu
