/* threads KIND own|legacy TASKS [fixed]: threads with tasks for the GPU, which depend on each other in a way that KIND
 * names. Each task sets memory of the GPU, waits for that, works on the CPU and fetches a byte, or with `fixed` does so
 * without the wait. All threads have streams of their own, or all use the legacy default stream. Prints the sum of the
 * numbers. */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "threads/alone.h"
#include "threads/joins.h"
#include "threads/meetings.h"
#include "threads/openmp.h"
#include "threads/queues.h"
#include "threads/streams.h"
#include "threads/turns.h"

static const std::map<std::string, void (*)()> kinds = {
    {"apart", apart},
    {"uneven", uneven},
    {"four", four},
    {"mixed", mixed},
    {"heavy", heavy},
    {"beside", beside},
    {"halfway", halfway},
    {"bursts", bursts},
    {"joined", joined},
    {"sections", sections},
    {"promised", promised},
    {"futures", futures},
    {"gathered", gathered},
    {"barrier", barrier},
    {"leader", leader},
    {"broadcast", broadcast},
    {"latch", latch},
    {"omp_for", omp_for},
    {"omp_sections", omp_sections},
    {"omp_tasks", omp_tasks},
    {"pool", pool},
    {"workers", workers},
    {"pipeline", pipeline},
    {"chain", chain},
    {"makers", makers},
    {"market", market},
    {"stages", stages},
    {"stealing", stealing},
    {"shared", shared},
    {"frees", frees},
    {"polling", polling},
    {"callbacks", callbacks},
    {"recycled", recycled},
    {"counted", counted},
    {"events", events},
    {"handed", handed},
    {"buffers", buffers},
    {"mutex", mutex},
    {"readers", readers},
    {"ring", ring},
    {"spinning", spinning},
    {"slots", slots},
    {"rwlock", rwlock},
    {"once", once},
};

int main(int count, char **words)
{
    const auto kind = count < 4 ? kinds.end() : kinds.find(words[1]);
    if (kind == kinds.end()) {
        std::fprintf(stderr, "usage: threads KIND own|legacy TASKS [fixed]\n");
        return 1;
    }
    legacy = std::string(words[2]) == "legacy";
    tasks = std::atoi(words[3]);
    fixed = count > 4;
    kind->second();
    std::printf("%ld\n", total.load());
}
