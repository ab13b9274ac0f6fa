/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmdline.c - QEMU's arguments for every row of the machine table against tests/golden/qemu/.
 *
 * RENEW_GOLDEN=1 (ninja golden-qemu) writes the files instead; look at the difference before committing it.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"
#include "runtime/microvm/cmdline.h"

#ifndef GOLDEN_DIR
#error "GOLDEN_DIR is the folder of the golden files"
#endif

enum { GOLDEN_MAX = 64 * 1024 };

static struct cmdline_input input_of(const struct machine_row *row, enum accel accel, bool scratch,
                                     bool net)
{
	return (struct cmdline_input){
		.row = row,
		.accel = accel,
		.run_id = "run-0123456789abcdef",
		.memory_mib = 4096,
		.cpus = 2,
		.tsc_khz = machine_needs_tsc(row, accel) ? 2400000 : 0,
		.fds = { .kernel = 3,
		         .initrd = 4,
		         .rootfs = 5,
		         .inbox = 6,
		         .qmp = 7,
		         .console = 8,
		         .control = 9,
		         .conduit = 10,
		         .scratch = scratch ? 11 : -1,
		         .net = net ? 12 : -1 },
	};
}

static void join_lines(const struct strv *argv, struct buf *out)
{
	for (size_t i = 0; i < argv->count; i++)
		CHECK(buf_addf(out, "%s\n", argv->items[i]) == 0);
}

static void check_golden(const struct machine_row *row, enum accel accel, bool scratch, bool net)
{
	CLEANUP(fd_close) int dir = open(GOLDEN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(strv_done) struct strv argv = { 0 };
	CLEANUP(buf_done) struct buf got = BUF_INIT(GOLDEN_MAX), want = BUF_INIT(0);
	const struct cmdline_input input = input_of(row, accel, scratch, net);
	char file[128];

	CHECK(cmdline_build(&input, machine_qemu(row), &argv) == 0);
	join_lines(&argv, &got);
	snprintf(file, sizeof(file), "%s-%s%s%s.args", machine_name(row), accel_name(accel),
	         scratch ? "-scratch" : "", net ? "-net" : "");
	CHECK(dir >= 0);
	if (getenv("RENEW_GOLDEN"))
		CHECK(replace_file_at(dir, file, got.data, got.len, 0644, NULL) == 0);
	if (read_file_at(dir, file, GOLDEN_MAX, &want, NULL) < 0)
		printf("# %s is missing: ninja golden-qemu\n", file);
	CHECK_STR(got.data, want.data);
}

static void every_row_is_as_its_golden_file(void)
{
	const struct machine_row *row;

	for (unsigned i = 0; (row = machine_at(i)); i++) {
		for (int accel = 0; accel < ACCEL_COUNT; accel++) {
			check_golden(row, (enum accel) accel, false, false);
			check_golden(row, (enum accel) accel, true, false);
			check_golden(row, (enum accel) accel, true, true);
		}
	}
}

static void rows_are_found_by_name_only(void)
{
	static const char *const names[] = { "x86_64-built", "aarch64-built", "x86_64-debian",
		                             "x86_64-ubuntu", "aarch64-debian" };

	for (unsigned i = 0; i < 5; i++) {
		CHECK(machine_find(names[i]) == machine_at(i));
		CHECK_STR(machine_name(machine_at(i)), names[i]);
	}
	CHECK(!machine_find("x86_64") && !machine_find("") && !machine_at(5));
	CHECK(accel_from_name("kvm") == ACCEL_KVM && accel_from_name("tcg") == ACCEL_TCG);
	CHECK(accel_from_name("") == ACCEL_COUNT && accel_from_name("KVM") == ACCEL_COUNT);
}

/* What a run is about must not be readable in /proc of host or guest. */
static void no_argument_holds_a_path_but_those_of_the_table(void)
{
	CLEANUP(strv_done) struct strv argv = { 0 };
	const struct cmdline_input input = input_of(machine_at(0), ACCEL_TCG, true, true);

	CHECK(cmdline_build(&input, "qemu", &argv) == 0);
	for (size_t i = 0; i < argv.count; i++) {
		const char *slash = strchr(argv.items[i], '/');

		CHECK(!slash || strncmp(slash, "/dev/fdset/", 11) == 0 ||
		      strncmp(slash, "/proc/self/fd/", 14) == 0);
		CHECK(!strstr(argv.items[i], "netdev") && !strstr(argv.items[i], "-nic"));
	}
}

static const char *kernel_words(const struct strv *argv)
{
	for (size_t i = 0; i + 1 < argv->count; i++) {
		if (strcmp(argv->items[i], "-append") == 0)
			return argv->items[i + 1];
	}
	return "";
}

/* A template serves many runs, and whoever is in the guest can read them: two runs, the same words. */
static void the_kernel_s_words_carry_nothing_of_the_run(void)
{
	const struct machine_row *row;

	for (unsigned i = 0; (row = machine_at(i)); i++) {
		for (int accel = 0; accel < ACCEL_COUNT; accel++) {
			CLEANUP(strv_done) struct strv one = { 0 }, other = { 0 };
			struct cmdline_input input = input_of(row, (enum accel) accel, false,
			                                      false);

			input.cpus = 1;
			CHECK(cmdline_build(&input, "qemu", &one) == 0);
			input.run_id = "run-other";
			input.memory_mib = 512;
			input.cpus = 3;
			input.fds = (struct cmdline_fds){ 21, 22, 23, 24, 25, 26, 27, 28, 29, 30 };
			CHECK(cmdline_build(&input, "/bin/qemu", &other) == 0);
			CHECK(kernel_words(&one)[0] != '\0');
			CHECK_STR(kernel_words(&one), kernel_words(&other));
		}
	}
}

/* The rate of the TSC is believed only where it was measured. */
static void a_reliable_clock_needs_its_measured_rate(void)
{
	const struct machine_row *row;

	for (unsigned i = 0; (row = machine_at(i)); i++) {
		for (int accel = 0; accel < ACCEL_COUNT; accel++) {
			CLEANUP(strv_done) struct strv argv = { 0 };
			const struct cmdline_input input = input_of(row, (enum accel) accel, false,
			                                            false);
			const bool is_reliable = cmdline_build(&input, "qemu", &argv) == 0 &&
			                         strstr(kernel_words(&argv), " tsc=reliable") !=
			                                 NULL;

			CHECK(is_reliable == machine_needs_tsc(row, (enum accel) accel));
			CHECK(is_reliable ==
			      (strstr(kernel_words(&argv), " tsc_early_khz=2400000") != NULL));
		}
	}
}

/* A kernel that patches itself must not be run by a thread for each processor. */
static void only_our_kernels_have_threads(void)
{
	const struct machine_row *row;

	for (unsigned i = 0; (row = machine_at(i)); i++)
		CHECK(machine_has_cpu_threads(row) ==
		      (strcmp(machine_kernel_kind(row), "built") == 0));
}

static void sizes_are_checked_and_rounded(void)
{
	const uint64_t gib = 1ull << 30;
	struct machine_size size;
	struct resoluto_err err = { 0 };

	CHECK(machine_size_from(0, 0, 24 * gib, &size, &err) == 0);
	CHECK(size.memory_mib == 4096 && size.cpus == 2);
	CHECK(machine_size_from(0, 0, 2 * gib, &size, &err) == 0 && size.memory_mib == 2048);
	CHECK(machine_size_from(gib, 1, 24 * gib, &size, &err) == 0 && size.cpus == 1);
	CHECK(machine_size_from(gib, 1001, 24 * gib, &size, &err) == 0 && size.cpus == 2);
	CHECK(machine_size_from(128ull << 20, 1, 24 * gib, &size, &err) == 0 &&
	      size.memory_mib == 128);
	CHECK(machine_size_from((128ull << 20) - 1, 1, 24 * gib, &size, &err) == -EINVAL);
	CHECK(strstr(err.text, "128Mi"));
	CHECK(machine_size_from(25 * gib, 1, 24 * gib, &size, &err) == -EINVAL);
	CHECK(strstr(err.text, "24.0 GiB"));
	CHECK(machine_size_from(gib, 65000, 24 * gib, &size, &err) == -EINVAL);
}

int main(void)
{
	RUN(every_row_is_as_its_golden_file);
	RUN(rows_are_found_by_name_only);
	RUN(no_argument_holds_a_path_but_those_of_the_table);
	RUN(the_kernel_s_words_carry_nothing_of_the_run);
	RUN(a_reliable_clock_needs_its_measured_rate);
	RUN(only_our_kernels_have_threads);
	RUN(sizes_are_checked_and_rounded);
	return check_done();
}
