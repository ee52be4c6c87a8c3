#include "forms.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

namespace vgpu::ptx
{

namespace
{

/* A form of some instructions: the modifiers that it may have together, and the most operands. A list in braces or
 * brackets is one operand. The policy of `.L2::cache_hint` does not count as one. */
struct Forms {
    const char *opcodes;
    std::size_t operands;
    const char *modifiers;
};

/* Modifiers that several forms share. The name stands for them among a form's modifiers. */
struct Group {
    const char *name;
    const char *modifiers;
};

constexpr Group all_groups[] = {
    {"WHOLE", "u16 s16 u32 s32 u64 s64"},
    {"BITS", "b16 b32 b64"},
    {"ROUNDED", "rn rz rm rp"},
    {"HALVES", "f16 f16x2 bf16 bf16x2"},
    {"COMPARED", "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz"},
    {"MEMORY", "global shared shared::cta shared::cluster"},
    {"SCOPES", "cta cluster gpu sys"},
    {"ELEMENTS", "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64 b128 v2 v4 v8"},
    {"KEPT", "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate L2::cache_hint"},
    {"AHEAD", "L2::64B L2::128B L2::256B"},
    {"LANES", "u32 s32 sat"},
    {"AXES", "1d 2d 3d a1d a2d"},
};

constexpr Forms all_forms[] = {
    /* Integer Arithmetic, Extended-Precision Integer Arithmetic */
    {"add", 3, "WHOLE u16x2 s16x2 sat"},
    {"sub", 3, "WHOLE sat"},
    {"add sub addc subc", 3, "u32 s32 u64 s64 cc"},
    {"mul", 3, "WHOLE lo hi wide"},
    {"mad", 4, "WHOLE lo hi wide sat"},
    {"mad madc", 4, "u32 s32 u64 s64 lo hi cc"},
    {"mul24", 3, "u32 s32 lo hi"},
    {"mad24", 4, "u32 s32 lo hi sat"},
    {"sad", 4, "WHOLE"},
    {"div rem", 3, "WHOLE"},
    {"abs neg", 2, "s16 s32 s64"},
    {"min max", 3, "WHOLE u16x2 s16x2 relu"},
    {"popc clz brev", 2, "b32 b64"},
    {"bfind", 2, "u32 s32 u64 s64 shiftamt"},
    {"fns", 4, "b32"},
    {"bfe", 4, "u32 s32 u64 s64"},
    {"bfi", 5, "b32 b64"},
    {"szext", 3, "u32 s32 clamp wrap"},
    {"bmsk", 3, "b32 clamp wrap"},
    {"dp4a", 4, "u32 s32"},
    {"dp2a", 4, "u32 s32 lo hi"},
    /* Floating-Point, Half Precision Floating-Point */
    {"testp", 2, "finite infinite number notanumber normal subnormal f32 f64"},
    {"copysign", 3, "f32 f64"},
    {"add sub mul", 3, "ROUNDED ftz sat f32 f64"},
    {"fma mad", 4, "ROUNDED ftz sat f32 f64"},
    {"div", 3, "ROUNDED approx full ftz f32 f64"},
    {"rcp sqrt", 2, "ROUNDED approx ftz f32 f64"},
    {"rsqrt", 2, "approx ftz f32 f64"},
    {"sin cos lg2 ex2 tanh", 2, "approx ftz f32"},
    {"abs neg", 2, "ftz f32 f64 HALVES"},
    {"min max", 3, "ftz NaN xorsign abs f32 f64 HALVES"},
    {"min max", 4, "ftz NaN abs f32"},
    {"add sub mul", 3, "rn ftz sat HALVES"},
    {"fma", 4, "rn ftz sat relu HALVES"},
    {"tanh ex2", 2, "approx ftz HALVES"},
    /* Comparison and Selection, Logic and Shift */
    {"set setp", 4, "COMPARED BITS WHOLE HALVES f32 f64"},
    {"selp", 4, "BITS WHOLE f32 f64"},
    {"slct", 4, "BITS WHOLE f32 f64 ftz"},
    {"and or xor", 3, "pred BITS"},
    {"not cnot", 2, "pred BITS"},
    {"lop3", 6, "b32 or and"},
    {"shf", 4, "l r wrap clamp b32"},
    {"shl", 3, "BITS"},
    {"shr", 3, "BITS WHOLE"},
    /* Data Movement and Conversion */
    {"mov", 2, "pred b128 f32 f64 BITS WHOLE"},
    {"shfl", 5, "sync up down bfly idx b32"},
    {"prmt", 4, "b32 f4e b4e rc8 ecl ecr rc16"},
    {"ld", 2,
     "ELEMENTS MEMORY KEPT AHEAD SCOPES const local param param::entry param::func weak volatile relaxed acquire mmio "
     "nc ca cg cs lu cv"},
    {"ldu", 2, "global ELEMENTS"},
    {"st", 2, "ELEMENTS MEMORY KEPT SCOPES local param param::func weak volatile relaxed release mmio wb cg cs wt"},
    {"prefetch", 1, "global local L1 L2 L2::evict_last L2::evict_normal"},
    {"prefetchu", 1, "L1"},
    {"applypriority", 2, "global L2::evict_normal"},
    {"discard", 2, "global L2"},
    {"createpolicy", 4,
     "fractional range cvt global L2 L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged b64"},
    {"isspacep", 2, "MEMORY local param"},
    {"cvta", 2, "MEMORY to const local param u64"},
    {"cvt", 2, "u8 s8 f16 bf16 f32 f64 WHOLE ROUNDED rni rzi rmi rpi ftz sat"},
    {"cvt", 3, "rn rz relu satfinite f32 HALVES"},
    {"cvt", 3, "rn relu satfinite f32 f16x2 e4m3x2 e5m2x2"},
    {"cvt", 4, "pack sat u2 s2 u4 s4 u8 s8 u16 s16 s32 b32"},
    {"cp", 4, "async ca cg global shared shared::cta L2::cache_hint AHEAD"},
    {"cp", 1, "async commit_group wait_group wait_all"},
    {"cp", 1, "async mbarrier arrive noinc shared shared::cta b64"},
    {"cp", 4, "async bulk global shared::cta shared::cluster mbarrier::complete_tx::bytes bulk_group"},
    {"cp", 1, "async bulk commit_group wait_group read"},
    /* Texture, Surface */
    {"tex", 2, "AXES cube acube v4 f32 u32 s32"},
    {"suld", 2, "AXES b b8 b16 b32 b64 v2 v4 trap clamp zero ca cg cs cv"},
    {"sust", 2, "AXES b b8 b16 b32 b64 v2 v4 trap clamp zero wb cg cs wt"},
    /* Control Flow */
    {"bra", 1, "uni"},
    {"brx", 2, "idx uni"},
    {"call", 4, "uni"},
    {"ret", 0, "uni"},
    {"exit trap brkpt", 0, ""},
    /* Parallel Synchronization and Communication */
    {"bar barrier", 2, "cta sync arrive aligned"},
    {"bar barrier", 4, "cta red popc and or u32 pred aligned"},
    {"bar", 1, "warp sync"},
    {"barrier", 0, "cluster arrive wait release relaxed acquire aligned"},
    {"membar", 0, "cta gl sys"},
    {"membar", 0, "proxy alias"},
    {"fence", 0, "sc acq_rel SCOPES"},
    {"fence", 0, "mbarrier_init release cluster"},
    {"fence", 0, "acquire release sync_restrict::shared::cta sync_restrict::shared::cluster cluster"},
    {"fence", 0, "proxy alias async global shared::cta"},
    {"fence", 0,
     "proxy async::generic acquire release sync_restrict::shared::cta sync_restrict::shared::cluster cluster"},
    {"atom", 4,
     "MEMORY SCOPES relaxed acquire release acq_rel and or xor exch cas add inc dec min max noftz L2::cache_hint v2 v4 "
     "v8 b16 b32 b64 b128 u32 s32 u64 s64 f32 f64 HALVES"},
    {"red", 2,
     "MEMORY SCOPES relaxed release and or xor add inc dec min max noftz L2::cache_hint v2 v4 v8 b32 b64 u32 s32 u64 "
     "s64 f32 f64 HALVES"},
    {"vote", 3, "sync all any uni pred ballot b32"},
    {"match", 3, "any all sync b32 b64"},
    {"activemask", 1, "b32"},
    {"redux", 3, "sync add min max and or xor u32 s32 b32"},
    {"elect", 2, "sync"},
    {"griddepcontrol", 0, "launch_dependents wait"},
    {"mbarrier", 2, "init inval expect_tx complete_tx relaxed cta cluster shared shared::cta shared::cluster b64"},
    {"mbarrier", 3,
     "arrive arrive_drop expect_tx noComplete release relaxed cta cluster shared shared::cta shared::cluster b64"},
    {"mbarrier", 4, "test_wait try_wait parity acquire relaxed cta cluster shared shared::cta b64"},
    {"mbarrier", 2, "pending_count b64"},
    /* Stack Manipulation, Video, Miscellaneous */
    {"stacksave stackrestore", 1, "u64"},
    {"alloca", 3, "u64"},
    {"vadd vsub vabsdiff vmin vmax", 4, "LANES add min max"},
    {"vshl vshr", 4, "LANES add min max clamp wrap"},
    {"vmad", 4, "LANES shr7 shr15 po"},
    {"vset", 4, "u32 s32 eq ne lt le gt ge add min max"},
    {"vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4", 4, "LANES add"},
    {"vset2 vset4", 4, "u32 s32 eq ne lt le gt ge add"},
    {"nanosleep", 1, "u32"},
    {"pmevent", 1, "mask"},
    {"setmaxnreg", 1, "inc dec sync aligned u32"},
};

struct Known {
    std::size_t operands;
    std::vector<std::string> modifiers; /* sorted */
};

std::vector<std::string> words_of(const std::string &text)
{
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
        words.push_back(word);
    return words;
}

/* A form's modifiers, sorted, with groups replaced by their members. */
std::vector<std::string> modifiers_of(const Forms &forms)
{
    std::vector<std::string> modifiers;
    for (const std::string &word : words_of(forms.modifiers)) {
        auto group = std::find_if(std::begin(all_groups), std::end(all_groups),
                                  [&](const Group &candidate) { return word == candidate.name; });
        const std::vector<std::string> more =
            group == std::end(all_groups) ? std::vector<std::string>{word} : words_of(group->modifiers);
        modifiers.insert(modifiers.end(), more.begin(), more.end());
    }
    std::sort(modifiers.begin(), modifiers.end());
    return modifiers;
}

const std::vector<Known> *forms_of(const std::string &opcode)
{
    static const auto *table = [] {
        auto *made = new std::map<std::string, std::vector<Known>>;
        for (const Forms &forms : all_forms) {
            const std::vector<std::string> modifiers = modifiers_of(forms);
            for (const std::string &name : words_of(forms.opcodes))
                (*made)[name].push_back({forms.operands, modifiers});
        }
        return made;
    }();
    auto found = table->find(opcode);
    return found == table->end() ? nullptr : &found->second;
}

} // namespace

std::string unknown_part(const Instruction &instruction)
{
    const std::vector<Known> *forms = forms_of(instruction.words.front());
    if (!forms)
        return instruction.words.front();
    std::size_t policies = instruction.has("L2::cache_hint") ? 1 : 0;
    /* If no form fits, the one that fits furthest says what is unknown. */
    std::string part;
    std::size_t most = 0;
    for (const Known &known : *forms) {
        auto unknown =
            std::find_if(instruction.words.begin() + 1, instruction.words.end(), [&](const std::string &word) {
                return !std::binary_search(known.modifiers.begin(), known.modifiers.end(), word);
            });
        std::size_t understood = static_cast<std::size_t>(unknown - instruction.words.begin());
        bool whole = unknown == instruction.words.end();
        if (whole && instruction.operands.size() <= known.operands + policies)
            return "";
        if (understood > most) {
            most = understood;
            part = whole ? "operand " + std::to_string(known.operands + policies + 1) : "." + *unknown;
        }
    }
    return part;
}

} // namespace vgpu::ptx
