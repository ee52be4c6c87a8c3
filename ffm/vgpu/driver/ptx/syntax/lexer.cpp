#include "lexer.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "syntax.h"

namespace vgpu::ptx
{

namespace
{

constexpr int deepest = 1000; /* open brackets; the parser recurses for each */

bool in_word(const std::string &text, std::size_t place)
{
    unsigned char sign = static_cast<unsigned char>(text[place]);
    return std::isalnum(sign) || (sign != '\0' && std::strchr("_$%.", sign)) || sign >= 0x80;
}

/* Where the word that starts at `place` ends. `::` joins the parts of a modifier. Two directives need no space
 * between them (`.reg.b16`), so a directive ends at the next dot. The parts of an instruction's name stay together. */
std::size_t end_of_word(const std::string &text, std::size_t place)
{
    const bool directive = text[place] == '.';
    const std::size_t first = place;
    while (place < text.size()) {
        if (directive && place > first && text[place] == '.')
            break;
        if (in_word(text, place))
            ++place;
        else if (text.compare(place, 2, "::") == 0)
            place += 2;
        else
            break;
    }
    return place;
}

} // namespace

Lexer::Lexer(const std::string &text)
{
    int line = 1;
    for (std::size_t place = 0; place < text.size();) {
        std::size_t begin = place;
        if (std::isspace(static_cast<unsigned char>(text[place]))) {
            ++place;
        } else if (text.compare(place, 2, "//") == 0) {
            place = std::min(text.find('\n', place), text.size());
        } else if (text.compare(place, 2, "/*") == 0) {
            std::size_t end = text.find("*/", place + 2);
            place = end == std::string::npos ? text.size() : end + 2;
        } else if (text[place] == '"') {
            std::size_t end = text.find('"', place + 1);
            place = end == std::string::npos ? text.size() : end + 1;
            tokens_.push_back({text.substr(begin, place - begin - 1), line});
        } else if (in_word(text, place)) {
            place = end_of_word(text, place);
            tokens_.push_back({text.substr(begin, place - begin), line});
        } else if (text[place] == '\0') {
            break;
        } else {
            add(text.substr(place++, 1), line);
        }
        line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                            text.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
    }
    tokens_.push_back({"", line});
}

void Lexer::add(const std::string &text, int line)
{
    depth_ += std::strchr("([{", text[0]) ? 1 : std::strchr(")]}", text[0]) ? -1 : 0;
    if (depth_ > deepest)
        throw Error("line " + std::to_string(line) + ": more than " + std::to_string(deepest) + " open brackets");
    tokens_.push_back({text, line});
}

std::string Lexer::next()
{
    std::string text = peek();
    if (place_ + 1 < tokens_.size())
        ++place_;
    return text;
}

bool Lexer::accept(const std::string &text)
{
    if (peek() != text)
        return false;
    next();
    return true;
}

void Lexer::expect(const std::string &text)
{
    if (!accept(text))
        throw Error("line " + std::to_string(line()) + ": expected '" + text + "', found '" + peek() + "'");
}

} // namespace vgpu::ptx
