/* libvfft: a small closed library for discrete Fourier transforms of data in host memory, which stands for cuFFT in
 * place of FFTW. Each call uploads, computes, and downloads.
 *
 * libvfft.so returns when the result is there. libvfft_async.so only enqueues the work on the default stream; its
 * arrays must be pinned, and the caller waits before it touches them.
 */
#ifndef VFFT_H
#define VFFT_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vfftPlan *vfftHandle_t;

/* The points of a line; a transform is of VFFT_POINTS x VFFT_POINTS points. */
#define VFFT_POINTS 64

/* Makes a plan for two-dimensional transforms. Answers 0, or the runtime's error number. */
int vfftPlan2d(vfftHandle_t *plan);

/* Gives back the plan and its memory on the device; waits for the GPU. */
int vfftDestroy(vfftHandle_t plan);

/* Transforms VFFT_POINTS * VFFT_POINTS complex numbers (real and imaginary parts in turn), scaled so that their energy
 * stays. `in` and `out` may be the same. Answers 0, or the runtime's error number. */
int vfftExecute(vfftHandle_t plan, const float *in, float *out);

#ifdef __cplusplus
}
#endif
#endif
