// Reduces an array whose parts lie on several ranks of MPI: mpirun -n 2 example_all_reduce
#include <cstdio>
#include <vector>

#include <hone/hone.h>
#include <hone/mpi/communicator.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 0;
  try {
    hone::Session session(hone::Device::open("auto"));
    hone::MpiCommunicator ranks(MPI_COMM_WORLD);
    hone::Device& device = *session.device();

    // Rank r has r + 1 thousand elements: 1, 2, 3, … and so on through the ranks.
    const std::int64_t n = 1000 * (ranks.rank() + 1), before = 500 * ranks.rank() * (ranks.rank() + 1);
    std::vector<float> values;
    for (std::int64_t i = 1; i <= n; ++i) values.push_back(static_cast<float>(before + i));
    const hone::DeviceBuffer in(session.device(), values.size() * sizeof(float)), out(session.device(), 16);
    device.copy_to_device(in.data(), values.data(), in.size_bytes(), nullptr);

    float mean = 0;
    std::int64_t largest = 0;
    hone::tuned_all_reduce(session, ranks, hone::mean, in.as<float>(), n, out.as<float>(), nullptr);
    device.copy_to_host(&mean, out.data(), sizeof(mean), nullptr);
    hone::tuned_all_reduce(session, ranks, hone::argmax, in.as<float>(), n, out.as<std::int64_t>(), nullptr);
    device.copy_to_host(&largest, out.data(), sizeof(largest), nullptr);
    device.synchronize(nullptr);
    std::printf("rank %d of %d on %s: mean %g, largest element at %lld\n", ranks.rank(), ranks.ranks(),
                device.facts().name.c_str(), mean, static_cast<long long>(largest));
  } catch (const hone::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = 1;
  }
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
}
