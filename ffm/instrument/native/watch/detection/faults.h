/* Accesses to watched pages, as the CPU reports them. */
#ifndef FFM_FAULTS_H
#define FFM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* Install the handlers of SIGSEGV and SIGTRAP, and measure the cost of a fault. */
bool ffm_faults_open(void);

/* The cost of a fault in nanoseconds. */
uint64_t ffm_faults_cost(void);

#endif
