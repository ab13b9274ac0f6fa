/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "sandbox/bridge.h"
#include "sandbox/staging.h"
#include "wire/keys.h"

struct packing {
	const struct staging *staging;
	struct pack_report report;
	_Atomic uint64_t done; /* bytes; written by the packing thread, shown by the caller's */
	struct resoluto_err stop_err;
	bool was_stopped;
};

static void note_progress(void *ctx, uint64_t done)
{
	struct packing *packing = ctx;

	atomic_store(&packing->done, done);
}

static int pack(void *ctx, const struct resoluto_sink *sink, struct resoluto_err *err)
{
	struct packing *packing = ctx;
	const struct resoluto_run_options *options = packing->staging->options;
	struct pack_options how = {
		.paths = options->paths,
		.excludes = options->exclude,
		.protect = options->protect,
		.progress = note_progress,
		.ctx = packing,
	};

	return pack_tree(packing->staging->workspace_fd, &how, sink, &packing->report, err);
}

/* In the caller's thread: callbacks of the caller's are never called from another. */
static int tick(void *ctx)
{
	struct packing *packing = ctx;
	const struct resoluto_run_options *options = packing->staging->options;

	if (options->progress)
		options->progress(options->ctx, "stage the workspace", atomic_load(&packing->done),
		                  0);
	if (idle_asked_to_stop(packing->staging->idle, &packing->stop_err) == 0)
		return 0;
	packing->was_stopped = true;
	return -ECANCELED;
}

int staging_run(const struct staging *staging, struct pack_report *ret_report,
                struct resoluto_err *err)
{
	struct packing packing = { .staging = staging };
	struct bridge bridge;
	char key[RESOLUTO_KEY_MAX + 1];
	int r;

	if ((size_t) snprintf(key, sizeof(key), "%s/" KEY_INBOX_WORKSPACE, staging->store_prefix) >=
	    sizeof(key))
		return resoluto_fail(err, -EINVAL, "the store prefix is too long");
	r = bridge_start(&bridge, pack, &packing, err);
	if (r < 0)
		return resoluto_fail_in(err, r, "stage the workspace");
	bridge.tick = tick;
	bridge.tick_ctx = &packing;
	bridge.tick_fd = staging->idle->epoll_fd;
	r = resoluto_conduit_put(staging->conduit, key,
	                         &(struct resoluto_source){ .read = bridge_read, .ctx = &bridge },
	                         err);
	r = bridge_end(&bridge, r, err);
	if (packing.was_stopped)
		return resoluto_fail(err, -ECANCELED, "%s", packing.stop_err.text);
	if (r < 0)
		return resoluto_fail_in(err, r, "stage the workspace");
	*ret_report = packing.report;
	return 0;
}

static int explain(struct buf *why, uint64_t count, const char *one, const char *many)
{
	if (count == 0)
		return 0;
	return buf_addf(why, "%s%" PRIu64 " %s", why->len > 0 ? ", " : "", count,
	                count == 1 ? one : many);
}

int staging_explain(const struct pack_report *report, uint64_t *ret_left_out, char **ret_why)
{
	CLEANUP(buf_done) struct buf why = BUF_INIT(512);
	int r;

	r = explain(&why, report->excluded, "by the list of names that stay out",
	            "by the list of names that stay out");
	if (r == 0)
		r = explain(&why, report->special, "fifo, socket or device",
		            "fifos, sockets or devices");
	if (r == 0)
		r = explain(&why, report->links_out, "link that points out of the workspace",
		            "links that point out of the workspace");
	if (r == 0)
		r = explain(&why, report->unreadable, "unreadable", "unreadable");
	if (r < 0)
		return r;
	*ret_left_out = report->excluded + report->special + report->links_out + report->unreadable;
	*ret_why = buf_take(&why);
	return *ret_why ? 0 : -ENOMEM;
}
