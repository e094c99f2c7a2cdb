#include "runtime/device/cuda/cuda_graph.h"

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_scopes.h"

namespace hone {
namespace {

/// Ends a capture whose work threw: a stream that is left capturing would be of no use to anyone.
void abandon_capture(cudaStream_t stream) noexcept {
  cudaGraph_t graph = nullptr;
  ignore(cudaStreamEndCapture(stream, &graph));
  if (graph != nullptr) ignore(cudaGraphDestroy(graph));
}

}  // namespace

std::unique_ptr<CudaGraph> CudaGraph::capture(cudaStream_t stream, const std::function<void()>& work) {
  // Relaxed: other threads of the process may allocate and load code meanwhile.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "beginning a capture");
  try {
    work();
  } catch (...) {
    abandon_capture(stream);
    throw;
  }
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "ending a capture");
  const RelaxedCaptureScope relaxed;
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  ignore(cudaGraphDestroy(graph));
  check(status, "instantiating a graph");
  std::unique_ptr<CudaGraph> result(new CudaGraph(executable));
  check(cudaGraphUpload(executable, stream), "putting a graph on the device");
  return result;
}

CudaGraph::~CudaGraph() {
  const RelaxedCaptureScope relaxed;
  ignore(cudaGraphExecDestroy(executable_));
}

void CudaGraph::launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "replaying a graph"); }

}  // namespace hone
