/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/egress_report.h"
#include "cli/failure.h"
#include "egress/name.h"
#include "egress/reason.h"

enum {
	PORT_TLS = 443,
	PORT_PLAIN = 80,
	PORTS_MAX = 16, /* of a name, that are told */
};

static void json_release(json_t **value)
{
	json_decref(*value);
}

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static json_int_t port_of(const json_t *row)
{
	return json_integer_value(json_object_get(row, "port"));
}

/* What was refused before a word was said is taken for what usually is said on that port. */
static bool is_plain(const json_t *row)
{
	const char *protocol = text_of(row, "protocol");

	return strcmp(protocol, "http") == 0 ||
	       (strcmp(protocol, "none") == 0 && port_of(row) == PORT_PLAIN);
}

/* The name as an option takes it; a connection that was not begun has no port yet. */
static void add_pattern(struct text *out, const json_t *row)
{
	const json_int_t port = port_of(row);
	const json_int_t usual = is_plain(row) ? PORT_PLAIN : PORT_TLS;

	text_addf(out, "%s%s", is_plain(row) ? "http://" : "", text_of(row, "name"));
	if (port != 0 && port != usual)
		text_addf(out, ":%lld", (long long) port);
}

/* Whether an option would change anything. */
static bool can_be_allowed(const json_t *row, enum egress_reason reason)
{
	struct egress_name name;
	const char *text = text_of(row, "name");

	return (reason == EGRESS_NOT_ALLOWED || reason == EGRESS_PORT_NOT_ALLOWED) &&
	       egress_name_parse(text, strlen(text), &name) == EGRESS_NONE;
}

/* Whether key is new in the set; it is not new any more then. */
static bool is_first(json_t *set, const char *key)
{
	if (json_object_get(set, key))
		return false;
	return json_object_set_new(set, key, json_true()) == 0;
}

static bool is_port_refused(const json_t *row)
{
	return strcmp(text_of(row, "reason"), egress_reason_name(EGRESS_PORT_NOT_ALLOWED)) == 0;
}

/* What one line is about: a row, and with it those of other ports of the same name that are refused for the same reason. */
struct subject {
	const json_t *rows[PORTS_MAX];
	size_t count, more;
};

static void add_port(struct subject *subject, json_t *ports, const json_t *row)
{
	CLEANUP(text_done) struct text key = TEXT_INIT;

	text_addf(&key, "%lld", (long long) port_of(row));
	if (!is_first(ports, text_string(&key)))
		return;
	if (subject->count < PORTS_MAX)
		subject->rows[subject->count++] = row;
	else
		subject->more++;
}

static struct subject subject_of(const json_t *array, size_t first)
{
	CLEANUP(json_release) json_t *ports = json_object();
	const json_t *row = json_array_get(array, first), *other;
	struct subject subject = { .rows = { row }, .count = 1 };

	if (!is_port_refused(row))
		return subject;
	subject.count = 0;
	for (size_t i = first; (other = json_array_get(array, i)); i++) {
		if (is_port_refused(other) &&
		    strcmp(text_of(other, "name"), text_of(row, "name")) == 0)
			add_port(&subject, ports, other);
	}
	return subject;
}

static void add_ports(struct text *out, const struct subject *subject)
{
	if (port_of(subject->rows[0]) == 0)
		return;
	text_addf(out, " port%s ", subject->count > 1 ? "s" : "");
	for (size_t i = 0; i < subject->count; i++)
		text_addf(out, "%s%lld", i ? ", " : "", (long long) port_of(subject->rows[i]));
	if (subject->more > 0)
		text_addf(out, " and %zu more", subject->more);
}

static void add_options(struct text *out, const struct subject *subject)
{
	text_addf(out, "; to allow it:");
	for (size_t i = 0; i < subject->count; i++) {
		text_addf(out, " --egress ");
		add_pattern(out, subject->rows[i]);
	}
	/* Who only asked for the name has not said what for. */
	if (port_of(subject->rows[0]) == 0)
		text_addf(out, " (plain HTTP: --egress http://%s)",
		          text_of(subject->rows[0], "name"));
}

static void add_line(struct text *out, const struct subject *subject)
{
	const json_t *row = subject->rows[0];
	const char *name = text_of(row, "name"), *detail = text_of(row, "detail");
	const enum egress_reason reason = egress_reason_from_name(text_of(row, "reason"));

	text_addf(out, PROGRAM_NAME ": egress: %s ", text_of(row, "decision"));
	failure_add_printable(out, name, strlen(name));
	add_ports(out, subject);
	text_addf(out, ": %s",
	          reason == EGRESS_REASON_COUNT ? "unknown" : egress_reason_text(reason));
	if (can_be_allowed(row, reason)) {
		add_options(out, subject);
	} else if (detail[0]) {
		text_addf(out, " (");
		failure_add_printable(out, detail, strlen(detail));
		text_addf(out, ")");
	}
	text_addf(out, "\n");
}

static bool is_refused(const json_t *row)
{
	return strcmp(text_of(row, "decision"), "refused") == 0 &&
	       strcmp(text_of(row, "reason"), egress_reason_name(EGRESS_LEARNING)) != 0;
}

/* What the program saw as a mere reset, though the way to where it was allowed to go was at fault. */
static bool has_no_way(const json_t *row)
{
	if (strcmp(text_of(row, "decision"), "failed") != 0)
		return false;
	switch (egress_reason_from_name(text_of(row, "reason"))) {
	case EGRESS_NO_ADDRESS:
	case EGRESS_RESOLVER:
	case EGRESS_CONNECT_FAILED:
	case EGRESS_CONNECT_TIMEOUT:
	case EGRESS_PROXY_REFUSED:
		return true;
	default:
		return false;
	}
}

void egress_report_refused(struct text *out, const char *rows)
{
	CLEANUP(json_release) json_t *array = json_loads(rows ? rows : "[]", 0, NULL);
	CLEANUP(json_release) json_t *told = json_object();
	size_t i;
	json_t *row;

	json_array_foreach(array, i, row)
	{
		CLEANUP(text_done) struct text key = TEXT_INIT;

		text_addf(&key, "%s %s", text_of(row, "reason"), text_of(row, "name"));
		if ((is_refused(row) || has_no_way(row)) && is_first(told, text_string(&key)) &&
		    json_object_size(told) <= EGRESS_REPORT_MAX) {
			const struct subject subject = subject_of(array, i);

			add_line(out, &subject);
		}
	}
	if (json_object_size(told) > EGRESS_REPORT_MAX)
		text_addf(out,
		          PROGRAM_NAME ": egress: %zu more refused or failed; --json has them\n",
		          json_object_size(told) - EGRESS_REPORT_MAX);
}

static bool is_learned(const json_t *row, bool is_connection)
{
	return strcmp(text_of(row, "reason"), egress_reason_name(EGRESS_LEARNING)) == 0 &&
	       (port_of(row) != 0) == is_connection;
}

/* First connections, then names that were only asked for, as comments. */
static void add_learned(struct text *out, const json_t *array, json_t *told, bool is_connection)
{
	size_t i;
	json_t *row;

	json_array_foreach((json_t *) array, i, row)
	{
		CLEANUP(text_done) struct text pattern = TEXT_INIT;

		if (!is_learned(row, is_connection))
			continue;
		add_pattern(&pattern, row);
		if (!is_first(told, text_string(&pattern)))
			continue;
		if (is_connection)
			(void) is_first(told, text_of(row, "name"));
		text_addf(out, "%s", is_connection ? "" : "# asked for, but not connected to: ");
		failure_add_printable(out, text_string(&pattern), strlen(text_string(&pattern)));
		text_addf(out, "\n");
	}
}

void egress_report_learned(struct text *out, const char *rows)
{
	CLEANUP(json_release) json_t *array = json_loads(rows ? rows : "[]", 0, NULL);
	CLEANUP(json_release) json_t *told = json_object();

	add_learned(out, array, told, true);
	add_learned(out, array, told, false);
}

void egress_report_print(FILE *out, const char *rows)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	egress_report_refused(&text, rows);
	egress_report_learned(&text, rows);
	fputs(text_string(&text), out);
}
