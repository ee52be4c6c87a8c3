/* How what registers carry spreads along all paths through GPU code. */
#ifndef FFM_CARRIER_FLOW_H
#define FFM_CARRIER_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine_flow.h"
#include "machine_ways.h"

/* Before an instruction: which registers carry it, and whether control may reach the instruction. */
typedef struct {
    ffm_carriers carriers;
    bool reached;
} ffm_carriers_before;

/* What one instruction does, as ffm_instruction_uses. */
typedef bool (*ffm_carried)(uint32_t architecture, const uint64_t word[2], uint32_t place, ffm_carriers *carriers);

/* What a function does for one of its callers does not reach the others: each instruction has one state for the
 * kernel's own code, and one for each call that leads to it. */
typedef struct {
    const ffm_ways *ways;
    ffm_carried uses;
    uint32_t place;    /* of the half of an address that is followed */
    uint32_t contexts; /* the kernel's own, then those of its calls, if these are followed apart */
    ffm_carriers_before *before;
    uint64_t *changed;                        /* a bit for each of these */
    size_t next;                              /* the first word of `changed` in which a bit may be set */
    uint64_t callers[FFM_CALLS_FOLLOWED + 1]; /* of each context, the contexts that call from there */
} ffm_carrier_flow;

/* Follow calls apart if that is asked for and the calls are known. False if there is no memory; then there is nothing
 * to close. */
bool ffm_carrier_flow_open(ffm_carrier_flow *flow, const ffm_ways *ways, ffm_carried uses, uint32_t place, bool apart);
void ffm_carrier_flow_close(ffm_carrier_flow *flow);

/* As if control had reached nothing yet. */
void ffm_carrier_flow_clear(ffm_carrier_flow *flow);

/* Let control reach an instruction of the kernel's own code with these carriers. */
void ffm_carrier_flow_enter(ffm_carrier_flow *flow, size_t number, const ffm_carriers *carriers);

/* Follow all paths from there. Returns whether what is carried is used on any of them; the first use ends the
 * search. */
bool ffm_carrier_flow_uses(ffm_carrier_flow *flow);

#endif
