/* A program of one site, simulated on a clock of its own: what the trial of its correction finds (trials.h). Built with
 * trials.c by test_trials.py. */
#include "trials.h"

#include "clock.h"
#include "counters.h"
#include "plan.h"

static uint64_t now_ns;

static int simulated_clock(clockid_t clock, struct timespec *now)
{
    (void)clock;
    now->tv_sec = (time_t)(now_ns / 1000000000);
    now->tv_nsec = (long)(now_ns % 1000000000);
    return 0;
}

int (*ffm_clock)(clockid_t, struct timespec *) = simulated_clock;

enum { SITES = 2 };

static ffm_remedy_tally tallies[SITES];
static ffm_remedy_trial trials[SITES];
ffm_remedy_tally *ffm_tallies = tallies;
ffm_remedy_trial *ffm_trials = trials;
static const ffm_remedy_site *sites;

uint32_t ffm_plan_sites(void)
{
    return SITES;
}

uint32_t ffm_plan_number(const ffm_remedy_site *site)
{
    return (uint32_t)(site - sites);
}

/* How long things take at a site, in nanoseconds. */
typedef struct {
    uint64_t between; /* the program's own work between calls */
    uint64_t original, corrected;
    uint64_t left_behind; /* by a corrected call, for the next original call to wait for */
    uint64_t noise;       /* up to this much is added between calls */
    uint64_t disturbed;   /* the number of a call before which another program takes `disturbance` */
    uint64_t disturbance;
    uint64_t every; /* how many calls there are for a long one; 0: none is */
    uint64_t long_original, long_corrected;
    uint64_t changes; /* the number of the call from which on its calls take `then_`; 0: they never do */
    uint64_t then_original, then_corrected;
    uint64_t burst; /* how many calls there are to a pause of the program; 0: there is none */
    uint64_t pause;
    uint64_t seed; /* of the noise, that of the first site */
} behaviour;

static uint64_t time_of_call(const behaviour *site, uint32_t call, bool corrected)
{
    if (site->changes > 0 && call >= site->changes)
        return corrected ? site->then_corrected : site->then_original;
    if (site->every > 0 && call % site->every == site->every - 1)
        return corrected ? site->long_corrected : site->long_original;
    return corrected ? site->corrected : site->original;
}

static uint64_t state; /* of the noise */

static uint64_t noise_up_to(uint64_t most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return most == 0 ? 0 : (state >> 33) % most;
}

/* Makes that many calls of each site in turn, the second one until `second_ends`. */
__attribute__((visibility("default"))) void simulate(const ffm_remedy_site *plan, const behaviour *behaviours,
                                                     uint32_t calls, uint32_t second_ends,
                                                     ffm_remedy_tally *tallies_found, ffm_remedy_trial *trials_found)
{
    uint64_t behind[SITES] = {0};
    sites = plan;
    state = behaviours[0].seed;
    for (int i = 0; i < SITES; i++)
        tallies[i] = (ffm_remedy_tally){0}, trials[i] = (ffm_remedy_trial){0};
    ffm_trials_open();
    for (uint32_t call = 0; call < calls; call++)
        for (int i = 0; i < (call < second_ends ? SITES : 1); i++) {
            now_ns += behaviours[i].between + noise_up_to(behaviours[i].noise);
            now_ns += call == behaviours[i].disturbed ? behaviours[i].disturbance : 0;
            now_ns += behaviours[i].burst > 0 && call % behaviours[i].burst == 0 ? behaviours[i].pause : 0;
            bool corrected = ffm_trial_corrects(&plan[i]);
            uint64_t began_ns = now_ns;
            now_ns += time_of_call(&behaviours[i], call, corrected) + (corrected ? 0 : behind[i]);
            behind[i] = corrected ? behind[i] + behaviours[i].left_behind : 0;
            ffm_count(&tallies[i].calls);
            ffm_trial_called(&plan[i], corrected, began_ns);
        }
    for (int i = 0; i < SITES; i++)
        tallies_found[i] = tallies[i], trials_found[i] = trials[i];
}
