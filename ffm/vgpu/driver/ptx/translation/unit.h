/* What is compiled at a time: one kernel with the functions that it reaches. */
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "../syntax/syntax.h"
#include "../wait_point.h"

namespace vgpu::ptx
{

/* How a kernel's threads run. */
enum class Schedule : int {
    loop,       /* one after the other, in one function: no thread waits for another */
    regions,    /* a warp's lanes one after the other, from where they waited to where they wait (`schedules.h`) */
    coroutines, /* each suspends itself where it waits, and keeps its values in a frame; nothing that it calls waits */
    fibers      /* each on a stack of its own, which a thread that waits for others leaves */
};

struct Unit {
    const Module *module = nullptr;
    const Function *kernel = nullptr;
    std::vector<const Function *> functions;                     /* what the kernel reaches, itself last */
    std::map<const Function *, std::set<std::size_t>> exchanges; /* `analysis/lockstep.h`; none for other functions */
    std::map<const Function *, std::set<std::size_t>> spins;     /* where a thread may wait for what another one does */
    std::set<std::size_t> strided;                               /* `analysis/strides.h`: branches of the kernel */
    std::map<std::string, std::size_t> variable_index;           /* in the table of global and constant variables */
    std::map<std::string, std::size_t> shared_place;             /* static shared variables: offsets in bytes */
    std::map<std::string, std::size_t> parameter_place;          /* of the kernel */
    std::size_t static_shared = 0;                               /* bytes of all static ones */
    std::size_t shared_size = 0;                                 /* the same, up to where dynamic ones begin */
    std::size_t local_size = 0;                                  /* bytes of the largest function's local variables */
    Schedule schedule = Schedule::loop;
    bool calls_addresses = false; /* any of the functions calls what lies at an address */
};

/* Throws Error for a kernel that is absent or calls what is not there. */
Unit unit_of(const Module &module, const std::string &kernel);

struct Translation {
    std::string assembly;          /* LLVM's; the entry is `vgpu_entry` */
    std::vector<WaitPoint> points; /* of regions; the first is the kernel's start */
    std::size_t frame_size = 0;    /* bytes that a warp keeps while it waits; of regions */
};

/* Throws Error, which names the instruction, for what is not implemented. */
Translation translate(const Unit &unit);

/* The functions that translated code may call, and the inline parts that it shares. */
const char *prelude();

} // namespace vgpu::ptx
