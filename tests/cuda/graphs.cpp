// Captures and graphs. A graph is the list of works that were put on the streams of its capture; a replay puts them on
// one stream.
#include <algorithm>

#include "runtime.h"

namespace dry {
cudaError_t refuse(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return error;
}

// A capture of this thread counts unless it is relaxed; one of another thread if it is global; none if this thread is
// relaxed.
bool is_refused_by_captures() {
  if (current.mode == cudaStreamCaptureModeRelaxed) return false;
  bool refused = false;
  for (auto& capture : state().captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool counts = own
        ? capture->mode != cudaStreamCaptureModeRelaxed
        : capture->mode == cudaStreamCaptureModeGlobal && current.mode == cudaStreamCaptureModeGlobal;
    if (!counts) continue;
    refuse(*capture);
    refused = true;
  }
  return refused;
}

static cudaError_t begin(Stream& s, cudaStreamCaptureMode mode) {
  if (&s == &state().devices[s.device].legacy) return cudaErrorStreamCaptureUnsupported;
  if (s.capture) return cudaErrorIllegalState;
  static uint64_t last = 0;
  s.capture = std::make_shared<Capture>();
  s.capture->id = ++last;
  s.capture->origin = &s;
  s.capture->thread = std::this_thread::get_id();
  s.capture->mode = mode;
  state().captures.push_back(s.capture);
  return cudaSuccess;
}

static cudaError_t verdict(const Capture& capture) {
  const bool own_thread = capture.thread == std::this_thread::get_id();
  if (capture.mode != cudaStreamCaptureModeRelaxed && !own_thread) return cudaErrorStreamCaptureWrongThread;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  auto joined = [](const auto& fork) { return fork.second; };
  const bool all = std::all_of(capture.forked.begin(), capture.forked.end(), joined);
  return all ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

static cudaError_t end(Stream& s, cudaGraph_t* out) {
  *out = nullptr;
  std::shared_ptr<Capture> capture = s.capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != &s) return cudaErrorStreamCaptureUnmatched;
  const cudaError_t error = verdict(*capture);
  if (error == cudaErrorStreamCaptureWrongThread) return error;
  for (auto& [stream, _] : capture->forked) stream->capture = nullptr;
  s.capture = nullptr;
  auto& captures = state().captures;
  captures.erase(std::find(captures.begin(), captures.end(), capture));
  auto graph = std::move(capture->graph);
  if (error == cudaSuccess) *out = (cudaGraph_t)graph.release();
  return error;
}

static cudaStreamCaptureStatus status_of(const Stream& s) {
  if (!s.capture) return cudaStreamCaptureStatusNone;
  return s.capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

static cudaError_t replay(const Graph& graph, Stream& s) {
  if (state().refused_graph && --state().refused_graph == 0) return cudaErrorMemoryAllocation;
  const cudaError_t error = launch("a graph", {{1, 1, 1}, {1, 1, 1}}, s, {});
  for (auto& node : graph.nodes) push(s, node);
  return error;
}
}  // namespace dry

using namespace dry;

extern "C" {
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  return entry([&] { return begin(of(s), mode); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  return entry([&] { return end(of(s), graph); });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  return entry([&] { return *status = status_of(of(s)), cudaSuccess; });
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     size_t* number) {
  return entry([&] {
    Stream& s = of(stream);
    *status = status_of(s);
    if (nodes) *nodes = nullptr;
    if (edges) *edges = nullptr;
    if (number) *number = 0;
    if (id) *id = s.capture ? s.capture->id : 0;
    if (graph) *graph = s.capture ? (cudaGraph_t)s.capture->graph.get() : nullptr;
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return entry([&] { return std::swap(*mode, current.mode), cudaSuccess; });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return entry([&] {
    *executable = (cudaGraphExec_t) new Graph(*(Graph*)graph);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t s) {
  return entry([&] { return replay(*(Graph*)executable, of(s)); });
}
// Names of nodes are their numbers, from 1 on.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* number) {
  return entry([&] {
    const size_t all = ((Graph*)graph)->nodes.size();
    for (size_t i = 0; nodes && i < std::min(*number, all); i++) nodes[i] = (cudaGraphNode_t)(i + 1);
    *number = all;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return entry([&] { return delete (Graph*)graph, cudaSuccess; });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return entry([&] { return delete (Graph*)executable, cudaSuccess; });
}

// The driver's, which keep no last error. CUDA's headers rename some for callers of a later version; ltc asks for those
// of CUDA 12 by name.
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
  return (CUresult)driver_entry([&] { return begin(of(s), (cudaStreamCaptureMode)mode); });
}
CUresult cuStreamEndCapture(CUstream s, CUgraph* graph) {
  return (CUresult)driver_entry([&] { return end(of(s), graph); });
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** nodes, size_t* number) {
  return (CUresult)driver_entry([&] {
    static thread_local CUgraphNode last;
    const Stream& s = of(stream);
    *status = (CUstreamCaptureStatus)status_of(s);
    if (id) *id = s.capture ? s.capture->id : 0;
    if (graph) *graph = s.capture ? (CUgraph)s.capture->graph.get() : nullptr;
    const size_t all = s.capture ? s.capture->graph->nodes.size() : 0;
    last = (CUgraphNode)all;
    if (nodes) *nodes = all ? &last : nullptr;
    if (number) *number = all ? 1 : 0;
    return cudaSuccess;
  });
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  return (CUresult)cudaGraphInstantiateWithFlags(executable, graph, flags);
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream s) {
  return (CUresult)driver_entry([&] { return replay(*(Graph*)executable, of(s)); });
}
CUresult cuGraphDestroy(CUgraph graph) { return (CUresult)cudaGraphDestroy(graph); }
CUresult cuGraphExecDestroy(CUgraphExec executable) { return (CUresult)cudaGraphExecDestroy(executable); }
}
