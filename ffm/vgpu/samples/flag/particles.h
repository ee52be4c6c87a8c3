/* Particles in a periodic square that push each other away, and their motion on the CPU. */
#pragma once

#include <vector>

constexpr int particle_count = 320;
constexpr double box = 32;  /* length of the square's sides */
constexpr double reach = 2; /* of the force, and of the neighbour lists */
constexpr double stiffness = 4;
constexpr double time_step = 0.02;

struct Particle {
    float x, y;
    float x_velocity, y_velocity;
};

std::vector<Particle> make_particles();

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

/* The shortest way from one coordinate to another around the square. */
template <typename Number> ON_BOTH inline Number shortest(Number from, Number to)
{
    const Number side = Number(box);
    Number way = to - from;
    if (way > side / 2)
        way -= side;
    if (way < -side / 2)
        way += side;
    return way;
}

/* Back into the square. */
template <typename Number> ON_BOTH inline Number wrapped(Number coordinate)
{
    const Number side = Number(box);
    if (coordinate >= side)
        return coordinate - side;
    return coordinate < 0 ? coordinate + side : coordinate;
}

/* The push of a particle at a distance: linear, and none beyond `reach`. Divided by the distance. */
template <typename Number> ON_BOTH inline Number push(Number distance)
{
    return distance < Number(reach) && distance > 0 ? Number(stiffness) * (Number(reach) / distance - 1) : Number(0);
}

/* One step of time on the CPU, in double precision. It tries all pairs, where the GPU has lists of neighbours. */
class ReferenceStep
{
  public:
    /* Predicts where `particles` will be after the step: the CPU's own work between its CUDA calls. */
    void predict(const std::vector<Particle> &particles);
    /* The largest difference of a coordinate or velocity to what was predicted. */
    double difference(const std::vector<Particle> &particles) const;

  private:
    std::vector<double> x_, y_, x_velocity_, y_velocity_;
};

/* The energy of motion of all particles. */
double kinetic_energy(const std::vector<Particle> &particles);
