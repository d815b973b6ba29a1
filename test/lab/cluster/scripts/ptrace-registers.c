/*
 * User-Mode Linux 6.1 keeps 2696 bytes of floating-point registers for each process of a guest. On a processor with AMX the
 * kernel has more and refuses a shorter set, so that the guest ends with its first program. Preloaded, this ptrace(2) adds
 * what is missing from the registers that the process has. A guest has no use for them.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static unsigned char whole[64 * 1024] __attribute__((aligned(64)));

long ptrace(enum __ptrace_request request, ...) {
  va_list rest;
  va_start(rest, request);
  pid_t pid = va_arg(rest, pid_t);
  void *address = va_arg(rest, void *);
  void *data = va_arg(rest, void *);
  va_end(rest);
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
    long word = 0;
    return syscall(SYS_ptrace, request, pid, address, &word) < 0 ? -1 : word;
  }
  if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
    struct iovec *own = data;
    struct iovec all = {whole, sizeof whole};
    if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, address, &all) < 0) return -1;
    if (all.iov_len > own->iov_len) {
      memcpy(whole, own->iov_base, own->iov_len);
      return syscall(SYS_ptrace, request, pid, address, &all);
    }
  }
  return syscall(SYS_ptrace, request, pid, address, data);
}
