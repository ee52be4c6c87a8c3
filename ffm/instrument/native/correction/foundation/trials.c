#include "trials.h"

#include <pthread.h>
#include <stdlib.h>

#include "clock.h"
#include "counters.h"
#include "pairs.h"
#include "plan.h"
#include "timed_block.h"

/* Calls of a pair's blocks, before scaling. Most are corrected, as long as that pays. */
enum { ORIGINAL = 2, CORRECTED = 6, UNPAID = 3, PAIR = 1 + ORIGINAL + CORRECTED };

/* Fewer calls are corrected in a pair if there are not this many pairs of calls: they have no time to make up for a
 * loss. */
enum { FEW = 8 };

/* A corrected block ends early when it has taken this many times as long as all of it would have taken uncorrected; or
 * its calls so far, if a time slice that another program got does not explain it. */
enum { HOPELESS = 2 };
static const uint64_t slice_ns = 10000000;

/* Blocks are lengthened until a pair lasts this long: schedulers and clocks disturb shorter ones. */
static const uint64_t least_pair_ns = 2000000;
enum { LARGEST_SCALE = 64 };

/* A unit rests for its pair's length times 2 to the power of its pairs, but at most of this. */
enum { LONGEST_REST = 7 };

/* Calls come in bursts if the program once spends this many times the mean from call to call between two of them. */
enum { PAUSE = 2 };

/* The part of the time that comparisons may cost, on top of what the faster of both ways would have taken. The first
 * one of a unit is made in any case. */
enum { SHARE = 50 };

/* A unit whose calls take less than FFM_TRIAL_NOTICEABLE of the time waits for that many calls. */
enum { PATIENCE = 64 };

/* A call is long if the unit took this many times its usual time in it. From this many long corrected calls on, calls
 * are left as they are to see whether that is the program's own. */
enum { LONG = 2, FEW_LONG = 5 };

/* A comparison whose site no longer occurs is given up after this many of its usual intervals, plus a time slice. */
enum { ABSENT = 16 };

typedef enum { DRAIN, FIRST, SECOND, ALONE } stage;

/* Calls between comparisons, and those of them that were long. */
typedef struct {
    uint32_t calls, long_calls;
    uint64_t lost_ns; /* by the long ones, beyond the usual time */
} stretch;

typedef struct {
    uint32_t calls, due; /* of the pacing site: so far, and at which the next pair begins */
    uint32_t scale;
    uint64_t first_ns, last_ns; /* when its calls ended */
    double original_ns;         /* from one original call to the next, by its last comparison; 0 before */
    bool now;                   /* whether the next call is corrected */
    ffm_pairs pairs;
    uint64_t original_ns_within; /* in its original calls */
    uint64_t within_ns;          /* in its calls and for late deliveries, when its last call ended */
    double usual_ns;             /* of that for one call, by its comparisons */
    stretch corrected;           /* since its long calls last seemed to be the program's own */
    uint32_t enough;             /* long calls that make them suspect */
    uint64_t pause_ns;           /* at least this is between a burst of its calls and the next; 0: they come evenly */
    bool paused_once;            /* such a pause did not come again */
} unit;

/* Under `lock`, except `now`. */
static unit *units;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    unit *of; /* NULL while nothing is compared */
    stage at;
    uint32_t left; /* calls of this block to come */
    uint64_t pair_ns;
    ffm_timed_block original, corrected; /* of this pair, as far as it has come */
    uint64_t longest_ns;                 /* between two calls of it, without them */
    uint32_t waited;                     /* calls of this block for the end of a burst */
    double lost_ns;                      /* by all comparisons */
    uint64_t opened_ns;
} comparison;

static ffm_remedy_trial *trial_of(const unit *it)
{
    return &ffm_trials[it - units];
}

static bool original_first(const unit *it)
{
    return trial_of(it)->pairs % 2 == 0;
}

static bool block_corrects(const unit *it)
{
    return (comparison.at == FIRST) != original_first(it);
}

static void set_now(unit *it, bool corrected)
{
    __atomic_store_n(&it->now, corrected, __ATOMIC_RELAXED);
}

void ffm_trials_open(void)
{
    pthread_mutex_init(&lock, NULL); /* in a child, another thread of the parent may have held it */
    if (units == NULL)
        units = calloc(ffm_plan_sites(), sizeof *units);
    for (uint32_t i = 0; i < ffm_plan_sites(); i++) {
        ffm_trials[i].corrects = true;
        if (units != NULL)
            units[i] = (unit){.scale = 1, .due = 1, .now = true, .enough = FEW_LONG};
    }
    comparison.of = NULL;
    comparison.lost_ns = 0;
    comparison.opened_ns = ffm_now();
}

bool ffm_trial_corrects(const ffm_remedy_site *site)
{
    return units == NULL || __atomic_load_n(&units[site->unit].now, __ATOMIC_RELAXED);
}

void ffm_trial_spent(uint32_t unit_number, uint64_t ns)
{
    if (unit_number != FFM_NO_UNIT)
        __atomic_fetch_add(&ffm_trials[unit_number].spent_ns, ns, __ATOMIC_RELAXED);
}

/* Shortly, if the last pair may have been the first of another phase, and not at all as long as the pairs leave it
 * open which way is faster. */
static void rest(unit *it)
{
    uint32_t doublings = ffm_pairs_contradictions(&it->pairs, trial_of(it)) > 0 ? 0 : trial_of(it)->pairs;
    uint32_t calls = PAIR * it->scale << (doublings < LONGEST_REST ? doublings : LONGEST_REST);
    it->due = it->calls + (ffm_pairs_leave_open(&it->pairs, trial_of(it)) ? 0 : calls);
    set_now(it, trial_of(it)->corrects);
    comparison.of = NULL;
}

/* Longer blocks, as long as they are a small part of the calls that were recorded. */
static void lengthen(unit *it, uint64_t pair_ns, uint32_t recorded)
{
    if (pair_ns < least_pair_ns && it->scale < LARGEST_SCALE &&
        it->scale * 2 * PAIR <= recorded / FFM_TRIAL_LEAST_CALLS)
        it->scale *= 2;
}

/* A pause between bursts of calls decides how long a block takes, not the correction. Whether the calls of this pair
 * came in bursts, so that it tells nothing and others must end where these end. */
static bool finds_pauses(unit *it, uint64_t pair_ns)
{
    const uint32_t calls = comparison.original.calls + comparison.corrected.calls;
    if (it->pause_ns > 0 || it->paused_once || comparison.longest_ns * calls <= PAUSE * pair_ns)
        return false;
    it->pause_ns = comparison.longest_ns / 2;
    return true;
}

static double larger(double one, double other)
{
    return one > other ? one : other;
}

static void finish(unit *it, uint64_t now_ns, uint32_t recorded)
{
    if (finds_pauses(it, comparison.original.ns + comparison.corrected.ns)) {
        rest(it);
        return;
    }
    const ffm_timed_block *original = &comparison.original, *corrected = &comparison.corrected;
    it->original_ns = ffm_timed_block_per_call(original);
    const double corrected_ns = ffm_timed_block_per_call(corrected), slower_ns = corrected_ns - it->original_ns;
    comparison.lost_ns += slower_ns > 0 ? slower_ns * corrected->calls : -slower_ns * original->calls;
    ffm_pairs_add(&it->pairs, trial_of(it), it->original_ns, corrected_ns,
                  ffm_timed_blocks_error_squared(original, corrected));
    const double usual_ns = larger(ffm_timed_block_within_call(original), ffm_timed_block_within_call(corrected));
    it->usual_ns += (usual_ns - it->usual_ns) / trial_of(it)->pairs;
    lengthen(it, now_ns - comparison.pair_ns, recorded);
    rest(it);
}

static uint32_t calls_of_block(const unit *it, uint32_t recorded)
{
    if (!block_corrects(it))
        return it->scale * ORIGINAL;
    return it->scale * (trial_of(it)->corrects && recorded >= FEW * PAIR ? CORRECTED : UNPAID);
}

static ffm_timed_block *current_block(const unit *it)
{
    return block_corrects(it) ? &comparison.corrected : &comparison.original;
}

static void begin_block(const unit *it, stage at, uint32_t recorded)
{
    comparison.at = at;
    comparison.waited = 0;
    comparison.left = calls_of_block(it, recorded);
    *current_block(it) = (ffm_timed_block){0};
}

/* Whether a corrected block has lost already, whatever its other calls take. */
static bool is_hopeless(const unit *it, uint32_t recorded)
{
    const double original_ns = original_first(it) ? ffm_timed_block_per_call(&comparison.original) : it->original_ns;
    if (!block_corrects(it) || original_ns <= 0)
        return false;
    const double ns = (double)comparison.corrected.ns, so_far_ns = original_ns * comparison.corrected.calls;
    return ns > HOPELESS * original_ns * calls_of_block(it, recorded) ||
           (ns > HOPELESS * so_far_ns && ns > so_far_ns + slice_ns);
}

/* Whether the last call but one of a block should be the first of a burst, but this one, so soon after the one before,
 * is not. */
static bool waits_for_burst(unit *it, uint64_t since_ns, uint32_t recorded)
{
    if (it->pause_ns == 0 || comparison.left != 2 || since_ns >= it->pause_ns)
        return false;
    if (++comparison.waited <= recorded / FFM_TRIAL_LEAST_CALLS)
        return true;
    it->pause_ns = 0;
    it->paused_once = true;
    return false;
}

/* A call of the unit that is being compared is over, so long after the one before. */
static void advance(unit *it, uint64_t now_ns, uint64_t since_ns, uint64_t within_ns, uint32_t recorded)
{
    if (comparison.at != DRAIN) {
        ffm_timed_block_add(current_block(it), since_ns, within_ns, block_corrects(it) && comparison.left == 1);
        if (since_ns > within_ns && since_ns - within_ns > comparison.longest_ns)
            comparison.longest_ns = since_ns - within_ns;
    }
    if (!waits_for_burst(it, since_ns, recorded))
        comparison.left--;
    if (comparison.left > 0) {
        if (comparison.at != DRAIN && is_hopeless(it, recorded))
            comparison.left = 1;
    } else if (comparison.at == SECOND) {
        finish(it, now_ns, recorded);
        return;
    } else {
        begin_block(it, comparison.at == DRAIN ? FIRST : SECOND, recorded);
    }
    /* The last call of a block ends its work. */
    set_now(it, comparison.at != DRAIN && block_corrects(it) && comparison.left > 1);
}

/* Begin a comparison: the next call ends the work of those before. */
static void begin(unit *it, uint64_t now_ns)
{
    comparison.of = it;
    comparison.at = DRAIN;
    comparison.left = it->pause_ns > 0 ? 2 : 1;
    comparison.waited = 0;
    comparison.longest_ns = 0;
    comparison.pair_ns = now_ns;
    set_now(it, false);
}

/* Of a single call, there is no time from one call to the next. */
static bool noticeable(const unit *it, uint64_t now_ns)
{
    const uint64_t since_ns = it->calls > 1 ? it->first_ns : comparison.opened_ns;
    return __atomic_load_n(&trial_of(it)->spent_ns, __ATOMIC_RELAXED) * FFM_TRIAL_NOTICEABLE >= now_ns - since_ns;
}

/* Whether corrections that stay only for want of proof seem to lose. Comparing again then costs nothing. */
static bool seems_to_lose(const unit *it)
{
    return trial_of(it)->corrects && trial_of(it)->slower > 0 && ffm_pairs_leave_open(&it->pairs, trial_of(it));
}

static bool is_due(const unit *it, uint64_t now_ns)
{
    if (it->calls < it->due)
        return false;
    bool matters = noticeable(it, now_ns);
    if (matters && (trial_of(it)->pairs == 0 || seems_to_lose(it)))
        return true;
    return (matters || it->calls >= PATIENCE) && comparison.lost_ns * SHARE <= (double)(now_ns - comparison.opened_ns);
}

/* Whether the site that is being compared has not been called for long. */
static bool is_absent(const unit *it, uint64_t now_ns)
{
    uint64_t usual_ns = (it->last_ns - it->first_ns) / (it->calls > 1 ? it->calls - 1 : 1);
    return now_ns > it->last_ns + ABSENT * usual_ns + slice_ns;
}

/* A call is over between comparisons. */
static void note(unit *it, uint64_t within_ns)
{
    it->corrected.calls++;
    if ((double)within_ns > LONG * it->usual_ns) {
        it->corrected.long_calls++;
        it->corrected.lost_ns += within_ns - (uint64_t)it->usual_ns;
    }
}

static double lost_by_call(const stretch *of)
{
    return (double)of->lost_ns / of->calls;
}

/* Whether long corrected calls lost more than the others gained. Short comparisons hardly ever contain one. */
static bool is_suspect(const unit *it)
{
    const double slower = trial_of(it)->slower;
    return it->corrected.long_calls >= it->enough &&
           lost_by_call(&it->corrected) > (slower < 0 ? -slower * it->original_ns : 0);
}

/* Leave as many calls as they are as there were corrected ones, and one before, which ends the corrected ones' work. */
static void begin_alone(unit *it)
{
    comparison.of = it;
    comparison.at = ALONE;
    comparison.left = it->corrected.calls + 1;
    set_now(it, false);
}

/* A call that was left as it is is over. One that is as long shows that long calls are the program's own. If they are,
 * the chance of meeting none in so many calls is e to the power of -FEW_LONG. */
static void advance_alone(unit *it, uint64_t within_ns)
{
    stretch *corrected = &it->corrected;
    if (comparison.left-- > corrected->calls)
        return;
    const double loss_ns = (double)corrected->lost_ns / corrected->long_calls;
    if ((double)within_ns > it->usual_ns + loss_ns / 2) {
        it->enough *= 2;
        *corrected = (stretch){0};
        rest(it);
    } else if (comparison.left == 0) {
        it->pairs.rare_loss = lost_by_call(corrected) / it->original_ns;
        trial_of(it)->slower += it->pairs.rare_loss;
        trial_of(it)->corrects = false;
        rest(it);
    }
}

/* Nanoseconds within the unit's calls and for late deliveries since its last call ended. */
static uint64_t take_within(unit *it)
{
    const uint64_t before_ns = it->within_ns;
    it->within_ns = __atomic_load_n(&it->original_ns_within, __ATOMIC_RELAXED) +
                    __atomic_load_n(&trial_of(it)->spent_ns, __ATOMIC_RELAXED);
    return it->within_ns - before_ns;
}

static void pace(unit *it, uint64_t now_ns, uint32_t recorded)
{
    if (it->calls++ == 0)
        it->first_ns = now_ns;
    const uint64_t since_ns = now_ns - it->last_ns;
    it->last_ns = now_ns;
    const uint64_t within_ns = take_within(it);
    const bool compared = trial_of(it)->pairs > 0;
    if (comparison.of == it && comparison.at == ALONE) {
        advance_alone(it, within_ns);
        return;
    }
    if (comparison.of != it && compared && it->now)
        note(it, within_ns);
    if (comparison.of == it) {
        advance(it, now_ns, since_ns, within_ns, recorded);
    } else if (comparison.of == NULL && compared && it->now && is_suspect(it)) {
        begin_alone(it);
    } else if (recorded >= FFM_TRIAL_LEAST_CALLS && is_due(it, now_ns)) {
        if (comparison.of != NULL && is_absent(comparison.of, now_ns))
            rest(comparison.of);
        if (comparison.of == NULL)
            begin(it, now_ns);
    }
}

void ffm_trial_called(const ffm_remedy_site *site, bool corrected, uint64_t began_ns)
{
    uint64_t now_ns = ffm_now();
    if (corrected)
        ffm_trial_spent(site->unit, now_ns - began_ns);
    else
        ffm_count(&ffm_tallies[ffm_plan_number(site)].original);
    if (!corrected && units != NULL)
        __atomic_fetch_add(&units[site->unit].original_ns_within, now_ns - began_ns, __ATOMIC_RELAXED);
    if (site->pace == 0 || units == NULL)
        return;
    pthread_mutex_lock(&lock);
    pace(&units[site->unit], now_ns, site->pace);
    pthread_mutex_unlock(&lock);
}
