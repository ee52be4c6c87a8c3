#pragma once

/* The training ratings in pinned host memory: by row (csr), by column (csc), and the row of each rating. */
struct TrainingSet {
    int rows;
    int columns;
    int count;
    int *csr_offsets;  /* rows + 1 */
    int *csr_columns;  /* count */
    float *csr_values; /* count */
    int *csc_offsets;  /* columns + 1 */
    int *csc_rows;     /* count */
    float *csc_values; /* count */
    int *coo_rows;     /* count, in the order of csr_columns and csr_values */
};
