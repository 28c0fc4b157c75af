// Forks: the child has a copy of all memory, the thread that forked, and no other.
#include <pthread.h>

#include "shim.h"

using namespace ltc;

namespace {
thread_local bool t_came_along = false;
void (*g_prepare)();
void (*g_parent)();
void (*g_child)();

// Last taken, as what the other side waits for may need them.
void take() {
  g_prepare();
  default_generator_mutex().lock();
  op_mutex().lock();
  pinned_mutex().lock();
  pool_lock(true);
}
void release() {
  pool_lock(false);
  pinned_mutex().unlock();
  op_mutex().unlock();
  default_generator_mutex().unlock();
}
}  // namespace

ltc::Alone::Alone() {
  if (t_came_along) before = ltc_threads({1, 1});
}
ltc::Alone::~Alone() {
  if (t_came_along) ltc_threads(before);
}

extern "C" {
int ltc_came_along(void) { return t_came_along; }

int ltc_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void), LtcError* err) {
  return guarded(err, [&] {
    g_prepare = prepare, g_parent = parent, g_child = child;
    auto in_parent = [] {
      release();
      g_parent();
    };
    auto in_child = [] {
      t_came_along = true;
      // Eager kernels of this thread, too: it is as in a worker of a data loader. A program may ask for more.
      ltc_threads({1, 1});
      release();
      g_child();
    };
    ltc_threads({-1, -1});  // finds its functions, which is nothing to do in a child
    TORCH_CHECK(pthread_atfork(take, in_parent, in_child) == 0, "no memory for fork handlers");
  });
}
}
