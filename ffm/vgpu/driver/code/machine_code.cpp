/* Cubins. NVIDIA does not document their ELF sections. The layout was derived from what nvcc 13.0 produces. The
 * constants are named as `cuobjdump -elf` prints them. */
#include <cstring>
#include <elf.h>
#include <unordered_map>

#include "ptx/code_contents.h"

namespace vgpu
{

namespace
{

constexpr std::uint16_t machine_cuda = 190; /* EM_CUDA */
constexpr unsigned char entry_flag = 0x10;  /* STO_CUDA_ENTRY in st_other: a kernel, not a device function */

/* A kernel's attributes (section .nv.info.NAME). Each has a format, a number, and 16 bits. The 16 bits are the
 * value, or in the format `sized` the number of bytes that follow. */
constexpr unsigned char format_sized = 4;
constexpr unsigned char attribute_parameter = 0x17; /* EIATTR_KPARAM_INFO */
struct Attribute {
    unsigned char format, attribute;
    std::uint16_t size;
};
struct ParameterAttribute {
    std::uint32_t index;
    std::uint16_t ordinal, offset;
    std::uint32_t flags; /* the parameter's size is in bits 18 to 31 */
};

/* An ELF file in memory. Its offsets are checked, because the file may be damaged. */
class Elf
{
  public:
    Elf(const char *bytes, std::size_t size) : bytes_(bytes), size_(size) {}

    bool read()
    {
        if (size_ < sizeof header_)
            return false;
        std::memcpy(&header_, bytes_, sizeof header_);
        if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_ident[EI_CLASS] != ELFCLASS64 ||
            header_.e_machine != machine_cuda || header_.e_shentsize != sizeof(Elf64_Shdr) ||
            header_.e_shstrndx >= header_.e_shnum)
            return false;
        if (!holds(header_.e_shoff, std::size_t{header_.e_shnum} * sizeof(Elf64_Shdr)))
            return false;
        sections_.resize(header_.e_shnum);
        std::memcpy(sections_.data(), bytes_ + header_.e_shoff, sections_.size() * sizeof(Elf64_Shdr));
        return true;
    }

    const std::vector<Elf64_Shdr> &sections() const
    {
        return sections_;
    }

    std::string name(const Elf64_Shdr &section) const
    {
        return text(sections_[header_.e_shstrndx], section.sh_name);
    }

    /* The string at `offset` of a string table; empty if it does not end inside the table. */
    std::string text(const Elf64_Shdr &table, std::size_t offset) const
    {
        if (!holds(table.sh_offset, table.sh_size) || offset >= table.sh_size)
            return "";
        const char *first = bytes_ + table.sh_offset + offset;
        const void *end = std::memchr(first, '\0', table.sh_size - offset);
        return end ? std::string(first, static_cast<const char *>(end)) : "";
    }

    /* The section's bytes; empty if it has none in the file (SHT_NOBITS). */
    std::string content(const Elf64_Shdr &section) const
    {
        if (section.sh_type == SHT_NOBITS || !holds(section.sh_offset, section.sh_size))
            return "";
        return std::string(bytes_ + section.sh_offset, section.sh_size);
    }

  private:
    bool holds(std::size_t offset, std::size_t length) const
    {
        return offset <= size_ && length <= size_ - offset;
    }

    const char *bytes_;
    std::size_t size_;
    Elf64_Ehdr header_ = {};
    std::vector<Elf64_Shdr> sections_;
};

bool read_parameters(const std::string &attributes, std::vector<KernelParameter> &parameters)
{
    for (std::size_t place = 0; place + sizeof(Attribute) <= attributes.size();) {
        Attribute attribute;
        std::memcpy(&attribute, attributes.data() + place, sizeof attribute);
        place += sizeof attribute;
        if (attribute.format != format_sized)
            continue;
        if (attribute.size > attributes.size() - place)
            return false;
        if (attribute.attribute == attribute_parameter) {
            ParameterAttribute found;
            if (attribute.size < sizeof found)
                return false;
            std::memcpy(&found, attributes.data() + place, sizeof found);
            if (found.ordinal >= parameters.size())
                parameters.resize(found.ordinal + std::size_t{1});
            parameters[found.ordinal] = {found.offset, found.flags >> 18};
        }
        place += attribute.size;
    }
    for (const KernelParameter &parameter : parameters)
        if (parameter.size == 0)
            return false;
    return true;
}

} // namespace

bool read_machine_code(const char *bytes, std::size_t size, CodeContents &contents)
{
    Elf elf(bytes, size);
    if (!elf.read())
        return false;
    std::unordered_map<std::string, const Elf64_Shdr *> by_name;
    for (const Elf64_Shdr &section : elf.sections())
        by_name.emplace(elf.name(section), &section);
    for (const Elf64_Shdr &table : elf.sections()) {
        if (table.sh_type != SHT_SYMTAB || table.sh_link >= elf.sections().size())
            continue;
        const Elf64_Shdr &names = elf.sections()[table.sh_link];
        std::string symbols = elf.content(table);
        for (std::size_t place = 0; place + sizeof(Elf64_Sym) <= symbols.size(); place += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            std::memcpy(&symbol, symbols.data() + place, sizeof symbol);
            if (symbol.st_shndx == SHN_UNDEF)
                continue;
            std::string name = elf.text(names, symbol.st_name);
            unsigned char type = ELF64_ST_TYPE(symbol.st_info);
            if (type == STT_OBJECT && symbol.st_size > 0)
                contents.variables.push_back({name, symbol.st_size});
            if (type != STT_FUNC || !(symbol.st_other & entry_flag))
                continue;
            auto attributes = by_name.find(".nv.info." + name);
            CodeKernel kernel{name, {}};
            if (attributes == by_name.end() || !read_parameters(elf.content(*attributes->second), kernel.parameters))
                return false;
            contents.kernels.push_back(kernel);
        }
    }
    return true;
}

} // namespace vgpu
