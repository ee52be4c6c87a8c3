#include "printing.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace vgpu::ptx
{

namespace
{

template <typename Value> Value next(const char *arguments, std::size_t &place)
{
    place = (place + sizeof(Value) - 1) / sizeof(Value) * sizeof(Value);
    Value value;
    std::memcpy(&value, arguments + place, sizeof value);
    place += sizeof value;
    return value;
}

template <typename Value> std::string formatted(const std::string &directive, Value value)
{
    int length = std::snprintf(nullptr, 0, directive.c_str(), value);
    std::string text(static_cast<std::size_t>(length < 0 ? 0 : length) + 1, '\0');
    std::snprintf(text.data(), text.size(), directive.c_str(), value);
    text.pop_back();
    return text;
}

/* Prints one directive, from `%` to its letter, with its argument. */
std::string convert(const std::string &directive, const char *arguments, std::size_t &place)
{
    char letter = directive.back();
    bool wide = directive.find('l') != std::string::npos || directive.find_first_of("jzt") != std::string::npos;
    switch (letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        return wide ? formatted(directive, next<std::int64_t>(arguments, place))
                    : formatted(directive, next<std::int32_t>(arguments, place));
    case 'c':
        return formatted(directive, next<std::int32_t>(arguments, place));
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        return formatted(directive, next<double>(arguments, place));
    case 's':
        return formatted(directive, reinterpret_cast<const char *>(next<std::uint64_t>(arguments, place)));
    case 'p':
        return formatted(directive, reinterpret_cast<const void *>(next<std::uint64_t>(arguments, place)));
    default:
        return directive;
    }
}

} // namespace

std::string printed(const char *format, const char *arguments, int &count)
{
    std::string text;
    std::size_t place = 0;
    for (count = 0; *format;) {
        if (*format != '%') {
            text += *format++;
            continue;
        }
        if (format[1] == '%') {
            text += '%';
            format += 2;
            continue;
        }
        std::string directive(1, *format++);
        while (*format && std::strchr("-+ #0123456789.*hlLjzt", *format)) {
            if (*format == '*')
                directive += std::to_string(next<std::int32_t>(arguments, place));
            else
                directive += *format;
            ++format;
        }
        if (!*format)
            break;
        directive += *format++;
        text += convert(directive, arguments, place);
        ++count;
    }
    return text;
}

} // namespace vgpu::ptx
