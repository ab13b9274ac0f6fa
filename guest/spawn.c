/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/spawn.h"

enum {
	STACK_BYTES = 64 * 1024,
	EXIT_CODE = 127,
};

struct start {
	spawn_fn *fn;
	void *ctx;
};

/* The child's first and last function: there is nothing to return to on its stack. */
static _Noreturn void run(struct start *start)
{
	start->fn(start->ctx);
	_exit(EXIT_CODE);
}

/* The C library has no call that gives a child both a cgroup and a stack.  Negative errno values on failure. */
static long clone_onto(const struct clone_args *args, struct start *start)
{
#if defined(__x86_64__)
	long result = SYS_clone3;

	__asm__ volatile("syscall\n\t"
	                 "testq %%rax, %%rax\n\t"
	                 "jnz 1f\n\t"
	                 "xorl %%ebp, %%ebp\n\t"
	                 "movq %[start], %%rdi\n\t"
	                 "call *%[run]\n"
	                 "1:"
	                 : "+a"(result)
	                 : "D"(args), "S"(sizeof(*args)), [start] "r"(start), [run] "r"(run)
	                 : "rcx", "r11", "memory", "cc");
	return result;
#elif defined(__aarch64__)
	register long result __asm__("x0") = (long) args;
	register long size __asm__("x1") = sizeof(*args);
	register long number __asm__("x8") = SYS_clone3;

	__asm__ volatile("svc #0\n\t"
	                 "cbnz x0, 1f\n\t"
	                 "mov x29, xzr\n\t"
	                 "mov x0, %[start]\n\t"
	                 "blr %[run]\n"
	                 "1:"
	                 : "+r"(result)
	                 : "r"(size), "r"(number), [start] "r"(start), [run] "r"(run)
	                 : "x30", "memory", "cc");
	return result;
#else
#error "spawn.c knows no way to start a child on this processor"
#endif
}

pid_t spawn_child(int cgroup_dir, spawn_fn *fn, void *ctx, struct resoluto_err *err)
{
	/* Of the caller's own stack, which waits meanwhile. */
	_Alignas(16) char stack[STACK_BYTES];
	struct start start = { fn, ctx };
	struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK,
		                   .exit_signal = SIGCHLD,
		                   .stack = (uintptr_t) stack,
		                   .stack_size = sizeof(stack) };
	long pid;

	if (cgroup_dir >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t) cgroup_dir;
	}
	pid = clone_onto(&args, &start);
	return pid < 0 ? resoluto_fail(err, (int) pid, "start a child") : (pid_t) pid;
}
