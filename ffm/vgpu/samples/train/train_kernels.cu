/* The kernels of train.py: logistic regression on a batch of samples. */
#include "portable_kernel.h"

#ifdef __CUDACC__
#define EXPORT extern "C"
#else
#include <cmath>
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

/* errors[s] = the predicted probability of sample s minus its label, losses[s] = its cross entropy. One thread for each
 * sample; samples lie row after row, weights end with the bias. */
extern "C" __global__ void predict(const float *samples, const float *labels, const float *weights, float *errors,
                                   float *losses, int features)
{
    const int sample = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = weights[features];
    for (int feature = 0; feature < features; ++feature)
        sum += samples[sample * features + feature] * weights[feature];
    const float probability = 1 / (1 + expf(-sum));
    errors[sample] = probability - labels[sample];
    /* log(1 + e^-z) for the sign of the label, without overflow */
    const float margin = labels[sample] > 0.5f ? sum : -sum;
    losses[sample] = (margin < 0 ? -margin : 0) + log1pf(expf(margin < 0 ? margin : -margin));
}
PORTABLE_KERNEL(predict);

/* A step against the gradient: one thread for each weight and one for the bias. */
extern "C" __global__ void update(const float *samples, const float *errors, float *weights, float rate, int features,
                                  int batch)
{
    const int feature = blockIdx.x * blockDim.x + threadIdx.x;
    if (feature > features)
        return;
    float gradient = 0;
    for (int sample = 0; sample < batch; ++sample)
        gradient += errors[sample] * (feature < features ? samples[sample * features + feature] : 1.0f);
    weights[feature] -= rate * gradient / batch;
}
PORTABLE_KERNEL(update);

/* The mean of all losses, by one thread. */
extern "C" __global__ void mean_loss(const float *losses, float *mean, int batch)
{
    float sum = 0;
    for (int sample = 0; sample < batch; ++sample)
        sum += losses[sample];
    *mean = sum / batch;
}
PORTABLE_KERNEL(mean_loss);

#ifndef __CUDACC__
/* The image that cuModuleLoadData takes on the virtual GPU. */
EXPORT const void *train_image()
{
    return &portable_kernel::image;
}
#endif
