// A clock that is a file: the wall clock of the program before which this is
// loaded (LD_PRELOAD) is the number of µs in the file that $ZAMOK_CLOCK names.
// Monotonic clocks stay the kernel's, so that the program's timers work.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *clock_us;

__attribute__((constructor)) static void map_clock(void) {
  const char *path = getenv("ZAMOK_CLOCK");
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd < 0) _exit(97);
  void *p = mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) _exit(98);
  clock_us = p;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  (void)tz;
  if (!clock_us) return -1;
  tv->tv_sec = *clock_us / 1000000;
  tv->tv_usec = *clock_us % 1000000;
  return 0;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  if (id != CLOCK_REALTIME || !clock_us) return syscall(SYS_clock_gettime, id, ts);
  ts->tv_sec = *clock_us / 1000000;
  ts->tv_nsec = *clock_us % 1000000 * 1000;
  return 0;
}

time_t time(time_t *out) {
  time_t t = clock_us ? *clock_us / 1000000 : 0;
  if (out) *out = t;
  return t;
}
