/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "check.h"
#include "cli/egress_report.h"

#define ROW(name, port, protocol, decision, reason, detail) \
	"{\"name\":\"" name "\",\"port\":" #port ",\"protocol\":\"" protocol \
	"\",\"decision\":\"" decision "\",\"reason\":\"" reason "\",\"detail\":\"" detail "\"}"

static void check_refused(const char *rows, const char *want)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	egress_report_refused(&text, rows);
	CHECK_STR(text_string(&text), want);
}

static void check_learned(const char *rows, const char *want)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	egress_report_learned(&text, rows);
	CHECK_STR(text_string(&text), want);
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void what_is_refused_comes_with_its_option(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	egress_report_refused(
		&text,
		"[" ROW("a.example", 0, "dns", "refused", "not-allowed", "") "," ROW(
			"b.example", 8443, "tls", "refused", "port-not-allowed",
			"") "," ROW("a.example", 0, "dns", "refused", "not-allowed", "") "]");
	CHECK(strstr(text_string(&text), "resoluto-sandbox: egress: refused a.example: ") ==
	      text_string(&text));
	CHECK(strstr(
		text_string(&text),
		"; to allow it: --egress a.example (plain HTTP: --egress http://a.example)\n"));
	CHECK(strstr(text_string(&text), "refused b.example port 8443: "));
	CHECK(strstr(text_string(&text), "; to allow it: --egress b.example:8443\n"));
	CHECK(count_lines(text_string(&text)) == 2);
}

/* Port 80 of a name is plain HTTP, whether or not a request was read before it was refused. */
static void plain_http_has_an_option_of_its_own(void)
{
	check_refused("[" ROW("a.example", 80, "none", "refused", "port-not-allowed",
	                      "") "," ROW("b.example", 80, "none", "refused", "not-allowed",
	                                  "") "," ROW("c.example", 8080, "http", "refused",
	                                              "not-allowed", "") "]",
	              "resoluto-sandbox: egress: refused a.example port 80: "
	              "the name is allowed, but not on this port; to allow it: --egress "
	              "http://a.example\n"
	              "resoluto-sandbox: egress: refused b.example port 80: "
	              "the name is not allowed; to allow it: --egress http://b.example\n"
	              "resoluto-sandbox: egress: refused c.example port 8080: "
	              "the name is not allowed; to allow it: --egress http://c.example:8080\n");
}

/* One line a name, with an option for each port. */
static void ports_of_a_name_are_told_together(void)
{
	check_refused("[" ROW("a.example", 22, "none", "refused", "port-not-allowed", "") "," ROW(
			      "b.example", 22, "none", "refused", "port-not-allowed",
			      "") "," ROW("a.example", 80, "none", "refused", "port-not-allowed",
	                                  "") "," ROW("a.example", 22, "none", "refused",
	                                              "port-not-allowed", "") "]",
	              "resoluto-sandbox: egress: refused a.example ports 22, 80: "
	              "the name is allowed, but not on this port; to allow it: --egress "
	              "a.example:22 --egress http://a.example\n"
	              "resoluto-sandbox: egress: refused b.example port 22: "
	              "the name is allowed, but not on this port; to allow it: --egress "
	              "b.example:22\n");
}

static void of_many_ports_some_are_told(void)
{
	CLEANUP(text_done) struct text rows = TEXT_INIT, text = TEXT_INIT;

	for (int port = 1; port <= 40; port++)
		text_addf(
			&rows,
			"%s{\"name\":\"a.example\",\"port\":%d,\"decision\":\"refused\",\"reason\":"
			"\"port-not-allowed\"}",
			port > 1 ? "," : "[", port);
	text_addf(&rows, "]");
	egress_report_refused(&text, text_string(&rows));
	CHECK(count_lines(text_string(&text)) == 1);
	CHECK(strstr(text_string(&text), "refused a.example ports 1, 2, 3, "));
	CHECK(strstr(text_string(&text), ", 15, 16 and 24 more: "));
	CHECK(strstr(text_string(&text), " --egress a.example:16\n"));
}

static void what_no_option_allows_has_its_detail(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	egress_report_refused(&text, "[" ROW("a.example", 443, "tls", "refused", "address-refused",
	                                     "10.0.0.1: private") "]");
	CHECK(strstr(text_string(&text), "(10.0.0.1: private)\n"));
	CHECK(!strstr(text_string(&text), "--egress"));
}

static void what_was_allowed_and_not_reached_says_why(void)
{
	check_refused("[" ROW("a.example", 443, "tls", "failed", "no-address", "not found") "," ROW(
			      "a.example", 443, "tls", "failed", "no-address",
			      "not found") "," ROW("b.example", 80, "http", "failed",
	                                           "connect-failed", "") "]",
	              "resoluto-sandbox: egress: failed a.example port 443: "
	              "the name does not resolve (not found)\n"
	              "resoluto-sandbox: egress: failed b.example port 80: "
	              "the connection was not accepted\n");
}

static void a_hostile_name_moves_no_cursor(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	egress_report_refused(&text,
	                      "[" ROW("a\\u001b[2J", 0, "dns", "refused", "not-allowed", "") "]");
	CHECK(strstr(text_string(&text), "a\\x1b[2J") && !strchr(text_string(&text), '\x1b'));
	CHECK(!strstr(text_string(&text), "--egress"));
}

static void nothing_is_said_of_what_went_well(void)
{
	check_refused(NULL, "");
	check_refused("[]", "");
	check_refused("nonsense", "");
	check_refused("[" ROW("a.example", 443, "tls", "allowed", "none", "") "," ROW(
			      "b.example", 443, "tls", "failed", "none",
			      "") "," ROW("c.example", 443, "tls", "refused", "learning",
	                                  "") "," ROW("d.example", 443, "tls", "failed",
	                                              "hello-cut", "") "]",
	              "");
	check_learned("[" ROW("a.example", 0, "dns", "refused", "not-allowed", "") "]", "");
}

static void many_are_counted(void)
{
	CLEANUP(text_done) struct text rows = TEXT_INIT, text = TEXT_INIT;

	text_addf(&rows, "[");
	for (int i = 0; i < EGRESS_REPORT_MAX + 7; i++)
		text_addf(&rows,
		          "%s{\"name\":\"n%d.example\",\"decision\":\"refused\",\"reason\":"
		          "\"not-allowed\"}",
		          i ? "," : "", i);
	text_addf(&rows, "]");
	egress_report_refused(&text, text_string(&rows));
	CHECK(count_lines(text_string(&text)) == EGRESS_REPORT_MAX + 1);
	CHECK(strstr(text_string(&text), ": 7 more refused or failed; --json has them\n"));
}

static void what_was_learned_is_a_file_for_the_next_run(void)
{
	check_learned("[" ROW("a.example", 0, "dns", "refused", "learning", "") "," ROW(
			      "a.example", 443, "tls", "refused", "learning",
			      "") "," ROW("a.example", 443, "tls", "refused", "learning",
	                                  "") "," ROW("b.example", 80, "http", "refused",
	                                              "learning", "") "," ROW("c.example", 0, "dns",
	                                                                      "refused", "learning",
	                                                                      "") "]",
	              "a.example\nhttp://b.example\n"
	              "# asked for, but not connected to: c.example\n");
}

int main(void)
{
	RUN(what_is_refused_comes_with_its_option);
	RUN(plain_http_has_an_option_of_its_own);
	RUN(ports_of_a_name_are_told_together);
	RUN(of_many_ports_some_are_told);
	RUN(what_no_option_allows_has_its_detail);
	RUN(what_was_allowed_and_not_reached_says_why);
	RUN(a_hostile_name_moves_no_cursor);
	RUN(nothing_is_said_of_what_went_well);
	RUN(many_are_counted);
	RUN(what_was_learned_is_a_file_for_the_next_run);
	return check_done();
}
