/* Reads kernels' parameters and variables from PTX (Parallel Thread Execution ISA, "Directives"). The rest of the
 * text is skipped. */
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "ptx/code_contents.h"

namespace vgpu
{

namespace
{

/* The text without comments, with spaces around each separator. */
std::string separated(const std::string &text)
{
    std::string result;
    for (std::size_t place = 0; place < text.size(); ++place) {
        if (text.compare(place, 2, "//") == 0)
            place = std::min(text.find('\n', place), text.size()) - 1;
        else if (text.compare(place, 2, "/*") == 0)
            place = std::min(text.find("*/", place + 2), text.size() - 2) + 1;
        else if (std::strchr("(),[]{};=", text[place]))
            (result += ' ') += std::string(1, text[place]) + ' ';
        else
            result += text[place];
    }
    return result;
}

/* The size in bytes of a type such as `.u64`, `.f32` or `.b8`; 0 if the word is not a type. */
std::size_t size_of_type(const std::string &word)
{
    if (word.size() < 3 || word[0] != '.' || !std::strchr("usfb", word[1]))
        return 0;
    int bits = std::atoi(word.c_str() + 2);
    return bits > 0 && bits % 8 == 0 ? static_cast<std::size_t>(bits) / 8 : 0;
}

/* The name, alignment and size in bytes of a declaration. Reads words up to one of `ends`, and stores that one in
 * `end`. Returns false if the declaration is incomplete. */
struct Declaration {
    std::string name;
    std::size_t alignment = 0;
    std::size_t size = 0;

    bool read(std::istream &words, const char *ends, std::string &end)
    {
        std::size_t given = 0, element = 0, count = 1;
        std::string word;
        while (words >> word && !std::strstr(ends, word.c_str())) {
            if (word == ".align")
                words >> given;
            else if (size_of_type(word) > 0)
                element = size_of_type(word);
            else if (word == "[") {
                words >> word;
                count *= std::strtoul(word.c_str(), nullptr, 0);
            } else if (word[0] != '.' && word != "]")
                name = word;
        }
        end = word;
        alignment = given > 0 ? given : element;
        size = element * count;
        return words && alignment > 0 && size > 0 && !name.empty();
    }
};

/* Reads `( .param .u64 name, .param .align 8 .b8 name[24] )`, or no list at all. */
bool read_parameters(std::istream &words, std::string word, std::vector<KernelParameter> &parameters)
{
    std::size_t place = 0;
    if (word != "(")
        return true;
    while (word != ")") {
        Declaration parameter;
        if (!parameter.read(words, "),", word))
            return word == ")" && parameters.empty() && parameter.name.empty();
        place = (place + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
        parameters.push_back({static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(parameter.size)});
        place += parameter.size;
    }
    return true;
}

/* Skips words up to the brace that closes the one read last. */
void skip_body(std::istream &words)
{
    std::string word;
    for (int depth = 1; depth > 0 && words >> word;)
        depth += word == "{" ? 1 : word == "}" ? -1 : 0;
}

} // namespace

bool read_portable_code(const std::string &text, CodeContents &contents)
{
    std::istringstream words(separated(text));
    std::string word;
    while (words >> word) {
        if (word == "{") {
            skip_body(words);
        } else if (word == ".entry") {
            CodeKernel kernel;
            words >> kernel.name >> word;
            if (!read_parameters(words, word, kernel.parameters))
                return false;
            contents.kernels.push_back(kernel);
        } else if (word == ".global" || word == ".const") {
            Declaration variable;
            if (variable.read(words, ";=", word))
                contents.variables.push_back({variable.name, variable.size});
        }
    }
    return true;
}

} // namespace vgpu
