#include <gmock/gmock.h>
#include <hone/host_check.h>
#include <hone/sdk/kernel_file.h>

#include <vector>

TEST(Scale, IsRightInEveryOrder) {
  hone::HostCheck check;
  check.unit = hone::read_kernel_file(SOURCE_FOLDER "/scale.cu");
  const std::vector<float> in(1000, 1.5f);
  check.buffers = {hone::CheckBuffer::of("in", in), hone::CheckBuffer::of("out", std::vector<float>(1000))};
  check.run = [](const hone::HostRun& run) {
    const hone::Dim3 grid{4}, block{256};
    const std::uint32_t dynamic_smem_bytes = 0;
    run.launch(grid, block, dynamic_smem_bytes, run.buffer<const float>(0), run.buffer<float>(1), 1000, 2.0f);
  };
  const hone::HostCheckReport report = hone::check_on_host(check);
  ASSERT_TRUE(report.ok()) << report.failure;
  EXPECT_THAT(report.values<float>(1), testing::Each(3.0f));
}
