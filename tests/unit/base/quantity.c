/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"

#include "base/quantity.h"

struct sample {
	const char *text;
	uint64_t value;
};

static void reads_bytes(void)
{
	static const struct sample samples[] = {
		{ "0", 0 },
		{ "1024", 1024 },
		{ "007", 7 },
		{ "4Gi", 4ull << 30 },
		{ "1Ki", 1024 },
		{ "512Mi", 512ull << 20 },
		{ "2Ti", 2ull << 40 },
		{ "1Pi", 1ull << 50 },
		{ "500M", 500000000 },
		{ "1k", 1000 },
		{ "1K", 1000 },
		{ "3G", 3000000000u },
		{ "1T", 1000000000000u },
		{ "1P", 1000000000000000u },
		{ "1.5Gi", 3ull << 29 },
		{ "0.1", 1 },
		{ "0.5Ki", 512 },
		{ "0.000000001Ki", 1 },
		{ "9223372036854775807", INT64_MAX },
		{ "8191Pi", 8191ull << 50 },
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		uint64_t bytes = 0;

		CHECK(quantity_parse_bytes(samples[i].text, &bytes, NULL) == 0);
		CHECK(bytes == samples[i].value);
	}
}

static void refuses_what_is_no_quantity(void)
{
	static const char *const bad[] = { "",      " 1",
		                           "1 ",    "-1",
		                           "+1",    "1.",
		                           ".5",    "1..2",
		                           "1.2.3", "Gi",
		                           "1gi",   "1GI",
		                           "1GiB",  "1B",
		                           "1 Gi",  "0x10",
		                           "1e3",   "1,5",
		                           "inf",   "nan",
		                           "1Gi\n", "1.0000000000Gi",
		                           "1Mi2" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct resoluto_err err = { 0 };
		uint64_t bytes = 77;

		CHECK(quantity_parse_bytes(bad[i], &bytes, &err) == -EINVAL);
		CHECK(err.code == -EINVAL && bytes == 77);
	}
}

static void refuses_what_does_not_fit(void)
{
	static const char *const large[] = { "9223372036854775808", "8192Pi", "9223372036854776K",
		                             "18446744073709551615" };
	uint64_t bytes = 77;

	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		CHECK(quantity_parse_bytes(large[i], &bytes, NULL) == -ERANGE && bytes == 77);
	CHECK(quantity_parse_bytes("18446744073709551616", &bytes, NULL) == -EINVAL);
	CHECK(quantity_parse_bytes("99999999999999999999999999999999", &bytes, NULL) == -EINVAL);
}

static void reads_cpus(void)
{
	uint32_t milli = 77;

	CHECK(quantity_parse_cpus("2", &milli, NULL) == 0 && milli == 2000);
	CHECK(quantity_parse_cpus("0.5", &milli, NULL) == 0 && milli == 500);
	CHECK(quantity_parse_cpus("500m", &milli, NULL) == 0 && milli == 500);
	CHECK(quantity_parse_cpus("0.0001", &milli, NULL) == 0 && milli == 1);
	milli = 77;
	CHECK(quantity_parse_cpus("5000000", &milli, NULL) == -ERANGE && milli == 77);
	CHECK(quantity_parse_cpus("2Gi", &milli, NULL) == -EINVAL);
	CHECK(quantity_parse_cpus("", &milli, NULL) == -EINVAL);
}

static void reads_durations(void)
{
	static const struct sample samples[] = {
		{ "90", 90000 },  { "90s", 90000 }, { "1.5h", 5400000 },
		{ "250ms", 250 }, { "2m", 120000 }, { "1d", 86400000 },
		{ "0", 0 },       { "0.001", 1 },   { "0.5ms", 1 },
	};
	uint64_t ms;

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		CHECK(quantity_parse_duration(samples[i].text, &ms, NULL) == 0);
		CHECK(ms == samples[i].value);
	}
	CHECK(quantity_parse_duration("1w", &ms, NULL) == -EINVAL);
	CHECK(quantity_parse_duration("1h30m", &ms, NULL) == -EINVAL);
	CHECK(quantity_parse_duration("999999999999999d", &ms, NULL) == -ERANGE);
}

static void formats_for_people(void)
{
	static const struct sample samples[] = {
		{ "0 B", 0 },
		{ "1023 B", 1023 },
		{ "1.0 KiB", 1024 },
		{ "4.0 GiB", 4ull << 30 },
		{ "1.5 MiB", 3ull << 19 },
		{ "16384.0 PiB", UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char text[32];

		quantity_format_bytes(samples[i].value, text, sizeof(text));
		CHECK_STR(text, samples[i].text);
	}
}

int main(void)
{
	RUN(reads_bytes);
	RUN(refuses_what_is_no_quantity);
	RUN(refuses_what_does_not_fit);
	RUN(reads_cpus);
	RUN(reads_durations);
	RUN(formats_for_people);
	return check_done();
}
