// Entry points of which only the status matters. Their parameters are left out, which the calling convention allows, so
// this file includes no header that declares them.

// They succeed, and there is nothing to do.
#define SUCCEEDS(name) \
  extern "C" int name() { return 0; }
SUCCEEDS(cudaFuncSetAttribute)
SUCCEEDS(cudaKernelSetAttributeForDevice)
SUCCEEDS(cudaProfilerStart)
SUCCEEDS(cudaProfilerStop)
SUCCEEDS(cudaGraphDebugDotPrint)

// They are not supported here (the code is that of the runtime and of the driver).
#define REFUSED(name) \
  extern "C" int name() { return 801; }
REFUSED(cudaDeviceGetDefaultMemPool)
REFUSED(cudaMemPoolGetAttribute)
REFUSED(cudaMemPoolSetAccess)
REFUSED(cudaMemPoolSetAttribute)
REFUSED(cudaMemPoolTrimTo)
REFUSED(cudaIpcCloseMemHandle)
REFUSED(cudaIpcGetEventHandle)
REFUSED(cudaIpcGetMemHandle)
REFUSED(cudaIpcOpenEventHandle)
REFUSED(cudaIpcOpenMemHandle)
REFUSED(cudaGraphAddNode)
REFUSED(cudaGraphConditionalHandleCreate)
REFUSED(cudaGraphNodeGetDependencies)
REFUSED(cudaStreamBeginCaptureToGraph)
REFUSED(cudaStreamUpdateCaptureDependencies)
REFUSED(cudaLibraryGetKernel)
REFUSED(cudaLibraryLoadData)
REFUSED(cudaLibraryUnload)
REFUSED(cuGetExportTable)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLinkAddData_v2)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate_v2)
REFUSED(cuModuleLoad)
REFUSED(cuPointerGetAttribute)
REFUSED(cuTensorMapEncodeTiled)

// cuBLAS asks the driver itself, so libtorch's calls of it end here. Products have their values from
// tests/cuda/shadow.cpp.
SUCCEEDS(cublasDestroy_v2)
SUCCEEDS(cublasSetStream_v2)
SUCCEEDS(cublasSetWorkspace_v2)
SUCCEEDS(cublasSetMathMode)
SUCCEEDS(cublasSetPointerMode_v2)
SUCCEEDS(cublasSetSmCountTarget)
extern "C" int cublasCreate_v2(void** handle) {
  static int any;
  return *handle = &any, 0;
}
extern "C" int cublasGetMathMode(void*, int* mode) { return *mode = 0; }
extern "C" int cublasGetPointerMode_v2(void*, int* mode) { return *mode = 0; }

#define OF_EACH_TYPE(name) \
  SUCCEEDS(cublasS##name) SUCCEEDS(cublasD##name) SUCCEEDS(cublasC##name) SUCCEEDS(cublasZ##name)
OF_EACH_TYPE(gemm_v2)
OF_EACH_TYPE(gemmStridedBatched)
OF_EACH_TYPE(gemmBatched)
OF_EACH_TYPE(gemv_v2)
OF_EACH_TYPE(trsm_v2)
OF_EACH_TYPE(trsmBatched)
OF_EACH_TYPE(gelsBatched)
OF_EACH_TYPE(geqrfBatched)
OF_EACH_TYPE(getrfBatched)
OF_EACH_TYPE(getrsBatched)
SUCCEEDS(cublasSdot_v2)
SUCCEEDS(cublasDdot_v2)
SUCCEEDS(cublasCdotc_v2)
SUCCEEDS(cublasCdotu_v2)
SUCCEEDS(cublasZdotc_v2)
SUCCEEDS(cublasZdotu_v2)
SUCCEEDS(cublasDotEx)
SUCCEEDS(cublasGemmEx)
SUCCEEDS(cublasSgemmEx)
SUCCEEDS(cublasGemmStridedBatchedEx)
