#include "particles.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

std::vector<Particle> make_particles()
{
    std::vector<Particle> particles;
    for (int index = 0; index < particle_count; ++index) {
        const double x = index % 32, y = index / 32 * 3.2;
        particles.push_back({static_cast<float>(wrapped(x + 0.4 * std::sin(1.7 * index) + 0.5)),
                             static_cast<float>(wrapped(y + 1.2 * std::cos(2.3 * index) + 1.6)),
                             static_cast<float>(0.5 * std::sin(0.9 * index)),
                             static_cast<float>(0.5 * std::cos(1.3 * index))});
    }
    return particles;
}

void ReferenceStep::predict(const std::vector<Particle> &particles)
{
    x_.clear();
    y_.clear();
    x_velocity_.clear();
    y_velocity_.clear();
    for (const Particle &particle : particles) {
        x_.push_back(particle.x);
        y_.push_back(particle.y);
        x_velocity_.push_back(particle.x_velocity);
        y_velocity_.push_back(particle.y_velocity);
    }
    const std::size_t count = x_.size();
    for (std::size_t one = 0; one < count; ++one) {
        for (std::size_t other = one + 1; other < count; ++other) {
            const double x = shortest(x_[one], x_[other]), y = shortest(y_[one], y_[other]);
            const double squared = x * x + y * y;
            if (squared >= reach * reach)
                continue;
            const double change = time_step * push(std::sqrt(squared));
            x_velocity_[one] -= change * x;
            y_velocity_[one] -= change * y;
            x_velocity_[other] += change * x;
            y_velocity_[other] += change * y;
        }
    }
    for (std::size_t index = 0; index < count; ++index) {
        x_[index] = wrapped(x_[index] + time_step * x_velocity_[index]);
        y_[index] = wrapped(y_[index] + time_step * y_velocity_[index]);
    }
}

double ReferenceStep::difference(const std::vector<Particle> &particles) const
{
    double largest = 0;
    for (std::size_t index = 0; index < particles.size(); ++index) {
        const Particle &particle = particles[index];
        largest = std::max({largest, std::fabs(shortest<double>(particle.x, x_[index])),
                            std::fabs(shortest<double>(particle.y, y_[index])),
                            std::fabs(particle.x_velocity - x_velocity_[index]),
                            std::fabs(particle.y_velocity - y_velocity_[index])});
    }
    return largest;
}

double kinetic_energy(const std::vector<Particle> &particles)
{
    double sum = 0;
    for (const Particle &particle : particles)
        sum += 0.5 * (static_cast<double>(particle.x_velocity) * particle.x_velocity +
                      static_cast<double>(particle.y_velocity) * particle.y_velocity);
    return sum;
}
