/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "resoluto/runtime.h"
#include "runtime/microvm/cmdline.h"

enum {
	WORD_MAX = 512, /* bytes of one argument */
	WORDS_MAX = 4,  /* words of one table line */
};

/* When a line of a table counts; several conditions must all hold. */
enum {
	ON_TCG = 1,
	ON_KVM = 2,
	ON_SCRATCH = 4,
	ON_HZ = 8,   /* the row knows CONFIG_HZ */
	ON_NET = 16, /* with egress */
};

/* {name} in a word is replaced by a value of the input. */
struct argument {
	unsigned when;
	const char *words[WORDS_MAX]; /* up to the first NULL */
	const char *reason;
};

struct machine_row {
	const char *name;
	const char *qemu;
	bool has_tsc;
	bool leaves_by_reset;
	unsigned hz; /* CONFIG_HZ of the row's kernel; 0: differs between its releases */
	const struct argument *machine;      /* up to one without words */
	const struct argument *kernel_words; /* the kernel command line, one word each */
};

static const struct argument common[] = {
	{ 0, { "-name", "guest={id},process=resoluto-qemu" }, "ps tells whose it is" },
	{ 0, { "-nodefaults" }, "no device that is not named here, above all no network card" },
	{ 0, { "-no-user-config" }, "files in /etc/qemu cannot add one either" },
	{ 0, { "-display", "none" }, "no window, no VNC" },
	{ 0, { "-no-reboot" }, "a reboot or a panic ends the process" },
	{ 0, { "-S" }, "it goes when the monitor listens, else an early end is not heard" },
	{ 0,
	  { "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny" },
	  "QEMU's own filter, behind ours" },
	{ 0, { "-m", "{memory}M" }, "touched only on use" },
	{ 0,
	  { "-machine", "mem-merge=off" },
	  "a host that looks for equal pages (KSM) merges none of a guest's: who writes to one "
	  "could tell by the "
	  "time what others hold" },
	{ 0, { "-smp", "{cpus}" }, "whole CPUs" },
	{ 0, { "-chardev", "socket,id=qmp,fd={qmp}" }, "inherited: no path, no listener" },
	{ 0, { "-mon", "chardev=qmp,mode=control" }, "how the guest ended" },
	{ 0, { "-chardev", "socket,id=console,fd={console}" }, "kept in a ring by the shim" },
	{ 0, { "-serial", "chardev:console" }, "the kernel's last words" },
	{ 0,
	  { "-add-fd", "fd={rootfs},set=1" },
	  "opened by the caller: rights of parents do not matter" },
	{ 0,
	  { "-blockdev", "driver=raw,node-name=rootfs,read-only=on,file.driver=file,"
	                 "file.filename=/dev/fdset/1,file.locking=off" },
	  "one image serves many runs at once, so it is never locked" },
	{ 0, { "-device", "virtio-blk-device,drive=rootfs,serial=rootfs" }, "found by its serial" },
	{ 0, { "-add-fd", "fd={inbox},set=2" }, "as above" },
	{ 0,
	  { "-blockdev", "driver=raw,node-name=inbox,read-only=on,file.driver=file,"
	                 "file.filename=/dev/fdset/2,file.locking=off" },
	  "raw: a format in the bytes must never be believed" },
	{ 0, { "-device", "virtio-blk-device,drive=inbox,serial=inbox" }, "found by its serial" },
	{ ON_SCRATCH, { "-add-fd", "fd={scratch},set=3" }, "as above" },
	{ ON_SCRATCH,
	  { "-blockdev", "driver=raw,node-name=scratch,cache.no-flush=on,discard=unmap,"
	                 "file.driver=file,file.filename=/dev/fdset/3,file.locking=off" },
	  "thrown away at the end, so nothing is flushed" },
	{ ON_SCRATCH,
	  { "-device", "virtio-blk-device,drive=scratch,serial=scratch,"
	               "werror=report,rerror=report" },
	  "a full host is an I/O error in the guest; the default would stop the VM in silence" },
	{ 0, { "-device", "virtio-serial-device,max_ports={ports}" }, "fewer queues boot faster" },
	{ 0, { "-chardev", "socket,id=control,fd={control}" }, "job, stdin, signals" },
	{ 0,
	  { "-device", "virtserialport,nr=1,chardev=control,name=control" },
	  "found by its name" },
	{ 0, { "-chardev", "socket,id=conduit,fd={conduit}" }, "objects" },
	{ 0,
	  { "-device", "virtserialport,nr=2,chardev=conduit,name=conduit" },
	  "found by its name" },
	{ ON_NET, { "-chardev", "socket,id=net,fd={net}" }, "to the gateway, and nowhere else" },
	{ ON_NET, { "-device", "virtserialport,nr=3,chardev=net,name=net" }, "found by its name" },
	{ 0, { "-kernel", "/proc/self/fd/{kernel}" }, "QEMU opens kernels by name only" },
	{ 0, { "-initrd", "/proc/self/fd/{initrd}" }, "as above" },
	{ 0 },
};

static const struct argument x86_machine[] = {
	{ 0,
	  { "-M", "microvm,rtc=on" },
	  "no PCI, no firmware to walk; without the clock chip it waits a second" },
	{ ON_TCG,
	  { "-accel", "tcg,thread=single" },
	  "this kernel patches itself, and with a thread per CPU QEMU may keep what it was: a "
	  "hang" },
	{ ON_KVM, { "-accel", "kvm" }, "what provisioning recorded; fails where it is not there" },
	{ ON_TCG,
	  { "-cpu", "max,-erms,-fsrm" },
	  "all that TCG can do, but for instructions that copy byte by byte there: 7 times as "
	  "slow" },
	{ ON_KVM, { "-cpu", "host" }, "all that the CPU can do" },
	{ 0 },
};

static const struct argument x86_kernel_words[] = {
	{ 0, { "console=ttyS0" }, "a panic is told by its text" },
	{ 0, { "quiet" }, "each character costs an exit" },
	{ 0, { "reboot=t" }, "no keyboard controller to ask" },
	{ 0, { "panic=-1" }, "at once: the reset ends QEMU" },
	{ 0,
	  { "swiotlb=noforce" },
	  "no device needs copies in low memory: from 3 GiB on, 64 MiB and 150 ms to clear them" },
	{ ON_TCG,
	  { "tsc_early_khz={tsc}" },
	  "measured under emulation it hangs one boot in eight" },
	{ ON_TCG, { "tsc=reliable" }, "else the watchdog falls back to jiffies" },
	{ ON_TCG | ON_HZ, { "lpj={lpj}" }, "no calibration loop for the further CPUs" },
	{ ON_TCG,
	  { "cpu_init_udelay=0" },
	  "an emulated CPU is taken for one of those that need 10 ms between reset and start" },
	{ ON_TCG, { "noreplace-smp" }, "each patched code page throws translations away" },
	{ 0 },
};

static const struct argument x86_built_machine[] = {
	{ 0,
	  { "-M", "microvm,rtc=on,acpi=off" },
	  "as above, and without tables that somebody would have to interpret: 35 ms" },
	{ ON_TCG, { "-accel", "tcg" }, "what provisioning recorded" },
	{ ON_KVM, { "-accel", "kvm" }, "what provisioning recorded; fails where it is not there" },
	{ ON_TCG,
	  { "-cpu", "max,-erms,-fsrm" },
	  "all that TCG can do, but for instructions that copy byte by byte there: 7 times as "
	  "slow" },
	{ ON_KVM, { "-cpu", "host" }, "all that the CPU can do" },
	{ 0 },
};

/* The words lapic_timer_hz and keepinit are patches of guest-kernel/. */
static const struct argument x86_built_kernel_words[] = {
	{ 0, { "console=ttyS0" }, "a panic is told by its text" },
	{ 0, { "quiet" }, "each character costs an exit" },
	{ 0, { "reboot=t" }, "the only way out of a machine without ACPI" },
	{ 0, { "panic=-1" }, "at once: the reset ends QEMU" },
	{ 0,
	  { "swiotlb=noforce" },
	  "no device needs copies in low memory: from 3 GiB on, 64 MiB and 150 ms to clear them" },
	{ 0,
	  { "lapic_timer_hz=1000000000" },
	  "the rate of QEMU's and KVM's local APIC: no calibration loop of 100 ms" },
	{ 0, { "no_timer_check" }, "the timer of this machine is known to work" },
	{ ON_TCG,
	  { "tsc_early_khz={tsc}" },
	  "measured under emulation it hangs one boot in eight" },
	{ ON_TCG, { "tsc=reliable" }, "else the watchdog falls back to jiffies" },
	{ ON_TCG, { "lpj={lpj}" }, "no calibration loop for the further CPUs: 76 ms" },
	{ ON_TCG,
	  { "cpu_init_udelay=0" },
	  "an emulated CPU is taken for one of those that need 10 ms between reset and start" },
	{ ON_TCG, { "noreplace-smp" }, "each patched code page throws translations away" },
	{ ON_TCG, { "keepinit" }, "so does each freed one; the under 1 MB is not missed" },
	{ 0 },
};

static const struct argument aarch64_machine[] = {
	{ 0, { "-M", "virt" }, "the board of no vendor; its virtio-mmio slots serve the devices" },
	{ ON_TCG, { "-accel", "tcg,thread=single" }, "as on x86" },
	{ ON_KVM, { "-accel", "kvm" }, "what provisioning recorded; fails where it is not there" },
	{ ON_TCG, { "-cpu", "max" }, "all that TCG can do" },
	{ ON_KVM, { "-cpu", "host" }, "all that the CPU can do" },
	{ 0 },
};

static const struct argument aarch64_kernel_words[] = {
	{ 0, { "console=ttyAMA0" }, "a panic is told by its text" },
	{ 0, { "quiet" }, "each character costs an exit" },
	{ 0, { "panic=-1" }, "at once: the reset ends QEMU" },
	{ 0,
	  { "swiotlb=noforce" },
	  "no device needs copies in low memory: from 3 GiB on, 64 MiB and 150 ms to clear them" },
	{ 0 },
};

static const struct argument aarch64_built_machine[] = {
	{ 0,
	  { "-M", "virt,acpi=off" },
	  "as above, without tables: the kernel reads the device tree" },
	{ ON_TCG, { "-accel", "tcg" }, "what provisioning recorded" },
	{ ON_KVM, { "-accel", "kvm" }, "what provisioning recorded; fails where it is not there" },
	{ ON_TCG, { "-cpu", "max" }, "all that TCG can do" },
	{ ON_KVM, { "-cpu", "host" }, "all that the CPU can do" },
	{ 0 },
};

static const struct machine_row rows[] = {
	{
		.name = "x86_64-built",
		.qemu = "qemu-system-x86_64",
		.has_tsc = true,
		.leaves_by_reset = true,
		.hz = 250,
		.machine = x86_built_machine,
		.kernel_words = x86_built_kernel_words,
	},
	{
		.name = "aarch64-built",
		.qemu = "qemu-system-aarch64",
		.machine = aarch64_built_machine,
		.kernel_words = aarch64_kernel_words,
	},
	{
		.name = "x86_64-debian",
		.qemu = "qemu-system-x86_64",
		.has_tsc = true,
		.hz = 250,
		.machine = x86_machine,
		.kernel_words = x86_kernel_words,
	},
	{
		.name = "x86_64-ubuntu",
		.qemu = "qemu-system-x86_64",
		.has_tsc = true,
		.machine = x86_machine,
		.kernel_words = x86_kernel_words,
	},
	{
		.name = "aarch64-debian",
		.qemu = "qemu-system-aarch64",
		.machine = aarch64_machine,
		.kernel_words = aarch64_kernel_words,
	},
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

const char *accel_name(enum accel accel)
{
	return accel == ACCEL_KVM ? "kvm" : "tcg";
}

enum accel accel_from_name(const char *name)
{
	if (strcmp(name, "kvm") == 0)
		return ACCEL_KVM;
	return strcmp(name, "tcg") == 0 ? ACCEL_TCG : ACCEL_COUNT;
}

const struct machine_row *machine_at(unsigned index)
{
	return index < ROW_COUNT ? &rows[index] : NULL;
}

const struct machine_row *machine_find(const char *name)
{
	for (unsigned i = 0; i < ROW_COUNT; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	return NULL;
}

const struct machine_row *machine_default(void)
{
#if defined(__x86_64__)
	return machine_find("x86_64-debian");
#elif defined(__aarch64__)
	return machine_find("aarch64-debian");
#else
	return NULL;
#endif
}

const char *machine_name(const struct machine_row *row)
{
	return row->name;
}

const char *machine_kernel_kind(const struct machine_row *row)
{
	return strchr(row->name, '-') + 1;
}

const char *machine_qemu(const struct machine_row *row)
{
	return row->qemu;
}

bool machine_leaves_by_reset(const struct machine_row *row)
{
	return row->leaves_by_reset;
}

bool machine_has_cpu_threads(const struct machine_row *row)
{
	for (const struct argument *argument = row->machine; argument->words[0]; argument++) {
		if (strcmp(argument->words[0], "-accel") == 0 &&
		    strstr(argument->words[1], "thread=single"))
			return false;
	}
	return true;
}

bool machine_needs_tsc(const struct machine_row *row, enum accel accel)
{
	return row->has_tsc && accel == ACCEL_TCG;
}

struct value {
	const char *name;
	uint64_t number;
};

enum { VALUES_MAX = 16 };

static void fill_values(const struct cmdline_input *input, struct value ret[VALUES_MAX])
{
	const struct cmdline_fds *fds = &input->fds;
	const unsigned hz = input->row->hz ? input->row->hz : 1;
	const struct value values[VALUES_MAX] = {
		{ "memory", input->memory_mib },
		{ "cpus", input->cpus },
		{ "ports", CMDLINE_PORTS },
		{ "tsc", input->tsc_khz },
		{ "lpj", (uint64_t) input->tsc_khz * 1000 / hz },
		{ "kernel", (uint64_t) fds->kernel },
		{ "initrd", (uint64_t) fds->initrd },
		{ "rootfs", (uint64_t) fds->rootfs },
		{ "inbox", (uint64_t) fds->inbox },
		{ "scratch", (uint64_t) fds->scratch },
		{ "qmp", (uint64_t) fds->qmp },
		{ "console", (uint64_t) fds->console },
		{ "control", (uint64_t) fds->control },
		{ "conduit", (uint64_t) fds->conduit },
		{ "net", (uint64_t) fds->net },
	};

	memcpy(ret, values, sizeof(values));
}

/* Append the value behind '{'; returns its length in the word, braces included. */
static size_t expand_one(const struct cmdline_input *input, const char *at, struct buf *out,
                         int *ret)
{
	struct value values[VALUES_MAX];
	size_t n = strcspn(at, "}");

	if (strncmp(at, "{id}", 4) == 0) {
		*ret = buf_add_str(out, input->run_id);
		return 4;
	}
	fill_values(input, values);
	for (int i = 0; i < VALUES_MAX && values[i].name; i++) {
		if (strlen(values[i].name) == n - 1 &&
		    strncmp(values[i].name, at + 1, n - 1) == 0) {
			*ret = buf_addf(out, "%" PRIu64, values[i].number);
			return n + 1;
		}
	}
	assert(!"a word of the table names an unknown value");
	*ret = -EINVAL;
	return n + 1;
}

static int expand(const struct cmdline_input *input, const char *word, struct buf *out)
{
	int r = 0;

	while (*word && r == 0) {
		if (*word == '{') {
			word += expand_one(input, word, out, &r);
		} else {
			r = buf_add(out, word, 1);
			word++;
		}
	}
	return r;
}

static bool counts(const struct cmdline_input *input, unsigned when)
{
	if ((when & ON_TCG) && input->accel != ACCEL_TCG)
		return false;
	if ((when & ON_KVM) && input->accel != ACCEL_KVM)
		return false;
	if ((when & ON_HZ) && !input->row->hz)
		return false;
	if ((when & ON_NET) && input->fds.net < 0)
		return false;
	return !(when & ON_SCRATCH) || input->fds.scratch >= 0;
}

static int add_argument(const struct cmdline_input *input, const struct argument *argument,
                        struct strv *argv)
{
	for (int i = 0; i < WORDS_MAX && argument->words[i]; i++) {
		CLEANUP(buf_done) struct buf word = BUF_INIT(WORD_MAX);
		int r = expand(input, argument->words[i], &word);

		if (r == 0)
			r = strv_add(argv, word.data);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_arguments(const struct cmdline_input *input, const struct argument *arguments,
                         struct strv *argv)
{
	for (size_t i = 0; arguments[i].words[0]; i++) {
		int r = 0;

		assert(arguments[i].reason);
		if (counts(input, arguments[i].when))
			r = add_argument(input, &arguments[i], argv);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_kernel_words(const struct cmdline_input *input, struct strv *argv)
{
	const struct argument *words = input->row->kernel_words;
	CLEANUP(buf_done) struct buf line = BUF_INIT(WORD_MAX);
	int r = 0;

	for (size_t i = 0; words[i].words[0] && r == 0; i++) {
		assert(words[i].reason);
		if (!counts(input, words[i].when))
			continue;
		if (line.len > 0)
			r = buf_add_str(&line, " ");
		if (r == 0)
			r = expand(input, words[i].words[0], &line);
	}
	if (r == 0)
		r = strv_add(argv, "-append");
	return r < 0 ? r : strv_add(argv, line.data);
}

int cmdline_build(const struct cmdline_input *input, const char *qemu, struct strv *ret_argv)
{
	CLEANUP(strv_done) struct strv argv = { 0 };
	const struct machine_row *row = input->row;
	int r = strv_add(&argv, qemu);

	if (r == 0)
		r = add_arguments(input, row->machine, &argv);
	if (r == 0)
		r = add_arguments(input, common, &argv);
	if (r == 0)
		r = add_kernel_words(input, &argv);
	if (r < 0)
		return r;
	*ret_argv = argv;
	argv = (struct strv){ 0 };
	return 0;
}

int machine_size_from(uint64_t memory_bytes, uint32_t cpu_milli, uint64_t host_memory_bytes,
                      struct machine_size *ret_size, struct resoluto_err *err)
{
	uint64_t bytes = memory_bytes ? memory_bytes : RESOLUTO_DEFAULT_MEMORY_BYTES;
	uint64_t cpus = ((uint64_t) (cpu_milli ? cpu_milli : RESOLUTO_DEFAULT_CPU_MILLI) + 999) /
	                1000;
	char have[32], want[32];

	quantity_format_bytes(bytes, want, sizeof(want));
	quantity_format_bytes(host_memory_bytes, have, sizeof(have));
	if (bytes < (uint64_t) CMDLINE_MEMORY_MIN_MIB << 20)
		return resoluto_fail(
			err, -EINVAL,
			"memory of %s is less than a guest kernel needs; ask for %dMi or more",
			want, CMDLINE_MEMORY_MIN_MIB);
	/* The default must not refuse a small host: memory is touched only on use. */
	if (bytes > host_memory_bytes && !memory_bytes)
		bytes = host_memory_bytes;
	if (bytes > host_memory_bytes)
		return resoluto_fail(err, -EINVAL,
		                     "memory of %s is more than this host has (%s); ask for less",
		                     want, have);
	if (cpus > CMDLINE_CPUS_MAX)
		return resoluto_fail(err, -EINVAL, "%llu CPUs; ask for %d or less",
		                     (unsigned long long) cpus, CMDLINE_CPUS_MAX);
	*ret_size = (struct machine_size){ .memory_mib = (uint32_t) (bytes >> 20),
		                           .cpus = (uint32_t) cpus };
	return 0;
}
