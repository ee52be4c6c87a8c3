#include <algorithm>
#include <cstring>
#include <elf.h>
#include <sys/mman.h>
#include <vector>

#include "../syntax/syntax.h"
#include "object.h"

namespace vgpu::ptx
{

namespace
{

constexpr std::size_t page = 4096, stub_size = 16;

/* The parts of the file. Its offsets are checked, because the file may come from a damaged cache. */
class File
{
  public:
    explicit File(const std::string &bytes) : bytes_(bytes)
    {
        header_ = at<Elf64_Ehdr>(0);
        if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_type != ET_REL ||
            header_.e_machine != EM_X86_64)
            throw Error("compiled code that is no object file");
        for (std::size_t index = 0; index < header_.e_shnum; ++index)
            sections.push_back(at<Elf64_Shdr>(header_.e_shoff + index * sizeof(Elf64_Shdr)));
    }

    template <typename Record> Record at(std::size_t offset) const
    {
        if (offset > bytes_.size() || sizeof(Record) > bytes_.size() - offset)
            throw Error("compiled code that is cut off");
        Record record;
        std::memcpy(&record, bytes_.data() + offset, sizeof record);
        return record;
    }

    std::string text(std::size_t table, std::size_t offset) const
    {
        std::size_t begin = sections.at(table).sh_offset + offset;
        if (begin >= bytes_.size())
            throw Error("compiled code that is cut off");
        return std::string(bytes_.c_str() + begin);
    }

    const char *content(const Elf64_Shdr &section) const
    {
        if (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset)
            throw Error("compiled code that is cut off");
        return bytes_.data() + section.sh_offset;
    }

    std::vector<Elf64_Shdr> sections;

  private:
    const std::string &bytes_;
    Elf64_Ehdr header_;
};

std::size_t aligned_place(std::size_t place, std::size_t alignment)
{
    alignment = std::max<std::size_t>(alignment, 1);
    return (place + alignment - 1) / alignment * alignment;
}

/* Lays out the sections, fills them, and resolves relocations. */
class Loader
{
  public:
    explicit Loader(const std::string &bytes) : file_(bytes), places_(file_.sections.size(), SIZE_MAX) {}

    std::size_t lay_out()
    {
        for (std::size_t index = 0; index < file_.sections.size(); ++index) {
            const Elf64_Shdr &section = file_.sections[index];
            if (section.sh_type == SHT_SYMTAB)
                symbols_ = index;
            if (!(section.sh_flags & SHF_ALLOC))
                continue;
            size_ = aligned_place(size_, section.sh_addralign);
            places_[index] = size_;
            size_ += section.sh_size;
        }
        stubs_ = aligned_place(size_, stub_size);
        std::size_t count = 0;
        if (symbols_ != 0)
            count = file_.sections[symbols_].sh_size / sizeof(Elf64_Sym);
        return aligned_place(stubs_ + 2 * count * stub_size, page);
    }

    void fill(char *memory, std::map<std::string, void *> &functions)
    {
        memory_ = memory;
        for (std::size_t index = 0; index < file_.sections.size(); ++index)
            if (places_[index] != SIZE_MAX && file_.sections[index].sh_type != SHT_NOBITS)
                std::memcpy(memory_ + places_[index], file_.content(file_.sections[index]),
                            file_.sections[index].sh_size);
        for (const Elf64_Shdr &section : file_.sections)
            if (section.sh_type == SHT_RELA && section.sh_info < places_.size() && places_[section.sh_info] != SIZE_MAX)
                relocate(section);
        if (symbols_ == 0)
            return;
        const Elf64_Shdr &table = file_.sections[symbols_];
        for (std::size_t place = 0; place + sizeof(Elf64_Sym) <= table.sh_size; place += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol = file_.at<Elf64_Sym>(table.sh_offset + place);
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
                functions[file_.text(table.sh_link, symbol.st_name)] = address_of(symbol);
        }
    }

  private:
    char *address_of(const Elf64_Sym &symbol) const
    {
        if (symbol.st_shndx >= places_.size() || places_[symbol.st_shndx] == SIZE_MAX)
            throw Error("compiled code with a symbol that lies nowhere");
        return memory_ + places_[symbol.st_shndx] + symbol.st_value;
    }

    /* Code that jumps to a function more than 2 GiB away: `jmp *0(%rip)`, then the address. The address also serves
     * as the function's entry in a global offset table. */
    char *stub_of(const std::string &name)
    {
        auto known = stub_places_.find(name);
        if (known != stub_places_.end())
            return known->second;
        void *target = runtime_function(name);
        if (!target)
            throw Error("translated code calls '" + name + "', which the driver does not have");
        char *stub = memory_ + stubs_ + stub_places_.size() * stub_size;
        static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
        std::memcpy(stub, jump, sizeof jump);
        std::memcpy(stub + sizeof jump, &target, sizeof target);
        return stub_places_[name] = stub;
    }

    void relocate(const Elf64_Shdr &section)
    {
        const Elf64_Shdr &table = file_.sections.at(section.sh_link);
        for (std::size_t place = 0; place + sizeof(Elf64_Rela) <= section.sh_size; place += sizeof(Elf64_Rela)) {
            Elf64_Rela entry = file_.at<Elf64_Rela>(section.sh_offset + place);
            Elf64_Sym symbol = file_.at<Elf64_Sym>(table.sh_offset + ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym));
            char *target =
                symbol.st_shndx == SHN_UNDEF ? stub_of(file_.text(table.sh_link, symbol.st_name)) : address_of(symbol);
            if (entry.r_offset + 8 > file_.sections[section.sh_info].sh_size + 4)
                throw Error("compiled code with a reference outside of its section");
            apply(ELF64_R_TYPE(entry.r_info), memory_ + places_[section.sh_info] + entry.r_offset,
                  target + entry.r_addend);
        }
    }

    static void apply(std::uint64_t type, char *place, char *target)
    {
        std::int64_t distance = target - place;
        std::int32_t narrow = static_cast<std::int32_t>(distance);
        switch (type) {
        case R_X86_64_64:
            std::memcpy(place, &target, sizeof target);
            return;
        case R_X86_64_PC64:
            std::memcpy(place, &distance, sizeof distance);
            return;
        case R_X86_64_PC32:
        case R_X86_64_PLT32:
            std::memcpy(place, &narrow, sizeof narrow);
            return;
        default:
            throw Error("compiled code with a relocation of type " + std::to_string(type));
        }
    }

    File file_;
    std::vector<std::size_t> places_; /* of the sections; SIZE_MAX: not loaded */
    std::map<std::string, char *> stub_places_;
    std::size_t size_ = 0, stubs_ = 0, symbols_ = 0;
    char *memory_ = nullptr;
};

} // namespace

Object::Object(const std::string &file)
{
    Loader loader(file);
    size_ = loader.lay_out();
    void *memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw Error("no memory for compiled code");
    memory_ = static_cast<char *>(memory);
    try {
        loader.fill(memory_, functions_);
        if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0)
            throw Error("this system does not let memory become executable");
    } catch (const Error &) {
        munmap(memory_, size_);
        throw;
    }
}

Object::~Object()
{
    munmap(memory_, size_);
}

void *Object::find(const std::string &name) const
{
    auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
}

} // namespace vgpu::ptx
