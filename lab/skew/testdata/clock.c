// A clock that is a file: the wall clock of the program before which this is
// loaded (LD_PRELOAD) is the number of µs in the file that $ZAMOK_CLOCK names, or
// with $ZAMOK_CLOCK_RUNS the kernel's clock and so many µs.
// Monotonic clocks stay the kernel's, so that the program's timers work.
//
// Valkey 9.1 asks for the wall clock once a ms at most, and in between adds what a
// counter of the processor says, which nobody can stand before. It does so only
// when it trusts that counter, and on x86 learns from /proc/cpuinfo whether to:
// for the program that file is not there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *clock_us;
static int runs;

__attribute__((constructor)) static void map_clock(void) {
  const char *path = getenv("ZAMOK_CLOCK");
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd < 0) _exit(97);
  void *p = mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) _exit(98);
  runs = getenv("ZAMOK_CLOCK_RUNS") != NULL;
  clock_us = p;
}

static int64_t now_us(void) {
  if (!runs) return *clock_us;
  struct timespec ts;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
  return *clock_us + ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  (void)tz;
  if (!clock_us) return -1;
  int64_t us = now_us();
  tv->tv_sec = us / 1000000;
  tv->tv_usec = us % 1000000;
  return 0;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  if (id != CLOCK_REALTIME || !clock_us) return syscall(SYS_clock_gettime, id, ts);
  int64_t us = now_us();
  ts->tv_sec = us / 1000000;
  ts->tv_nsec = us % 1000000 * 1000;
  return 0;
}

time_t time(time_t *out) {
  time_t t = clock_us ? now_us() / 1000000 : 0;
  if (out) *out = t;
  return t;
}

static FILE *open_unless_processor(const char *name, const char *path, const char *mode) {
  if (!strcmp(path, "/proc/cpuinfo")) {
    errno = ENOENT;
    return NULL;
  }
  return ((FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, name))(path, mode);
}

FILE *fopen(const char *restrict path, const char *restrict mode) {
  return open_unless_processor("fopen", path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode) {
  return open_unless_processor("fopen64", path, mode);
}
