/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resoluto-gateway - decides and relays the outgoing connections of one run; started by libresoluto-sandbox.
 *
 * What it reads comes from the guest, from name servers and from the whole network, so before the first
 * byte of any of it the gateway can do no more than open sockets to where the policy leads.
 *
 *	resoluto-gateway                    fd 3: port `net` of a microVM
 *	resoluto-gateway --redirect         fd 3: a socket whose end ends it; the connections of a bridge (redirect.h)
 *	resoluto-gateway --redirect-sweep   takes away the rules of a bridge that were left there
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "gateway/confine.h"
#include "gateway/conn.h"
#include "gateway/keeper.h"
#include "gateway/port.h"
#include "gateway/redirect.h"

enum { EXIT_REFUSED = 125 };

enum gateway_fd { FD_PORT = 3, FD_ROWS, FD_CONFIG, FD_END };

static int read_config(struct gateway *gateway, struct resoluto_err *err)
{
	int r = 0;

	for (int fd = FD_PORT; fd < FD_END && r == 0; fd++)
		r = fd_set_cloexec(fd, 1);
	if (r < 0)
		return resoluto_fail(err, r, "this program is started by libresoluto-sandbox only");
	(void) close_range(FD_END, ~0u, 0);
	r = gateway_config_read(FD_CONFIG, &gateway->config, err);
	(void) close(FD_CONFIG);
	return r;
}

static int open_all(struct gateway *gateway, struct resoluto_err *err)
{
	int r = audit_start(&gateway->audit, FD_ROWS, err);

	if (r < 0)
		return r;
	r = loop_new(&gateway->loop);
	if (r < 0)
		return resoluto_fail(err, r, "make an event loop");
	return resolver_new(gateway->loop, &gateway->resolver, err);
}

static void done(struct gateway *gateway)
{
	resolver_free(gateway->resolver);
	audit_done(&gateway->audit);
	gateway_config_done(&gateway->config);
	loop_free(&gateway->loop);
}

static int serve_port(struct gateway *gateway, struct resoluto_err *err)
{
	struct port port = { 0 };
	int r = port_init(&port, gateway, FD_PORT, err);

	if (r == 0)
		r = gateway_confine(&gateway->config, err);
	if (r == 0)
		r = audit_begin(&gateway->audit, err);
	if (r == 0)
		r = port_begin(&port);
	if (r == 0) {
		r = loop_run(gateway->loop);
		conn_end_all(gateway);
		audit_end(&gateway->audit);
		port_flush(&port);
	}
	port_done(&port);
	return r;
}

/* The keeper ended, or sent what it never sends. */
static int on_control(struct loop_watch *watch, uint32_t events)
{
	loop_stop(watch->loop);
	return 0;
}

static int serve_bridge(struct gateway *gateway, struct redirect *redirect, int control,
                        struct resoluto_err *err)
{
	struct loop_watch watch = { .fd = control, .events = EPOLLIN, .fn = on_control };
	int r = gateway_confine(&gateway->config, err);

	if (r == 0)
		r = audit_begin(&gateway->audit, err);
	if (r == 0)
		r = loop_add(gateway->loop, &watch);
	if (r == 0)
		r = redirect_begin(redirect);
	if (r == 0 && send(control, "r", 1, MSG_NOSIGNAL) != 1)
		r = -EPIPE;
	if (r == 0) {
		r = loop_run(gateway->loop);
		conn_end_all(gateway);
		audit_end(&gateway->audit);
	}
	loop_remove(&watch);
	return r;
}

static int run_redirect(struct gateway *gateway, struct resoluto_err *err)
{
	struct redirect redirect;
	int control = -1, r;
	pid_t pid = -1;

	if (!gateway->config.bridge.run[0])
		return resoluto_fail(err, -EINVAL, "the configuration names no bridge");
	r = redirect_init(&redirect, gateway, err);
	if (r == 0)
		r = keeper_fork(&pid, &control, err);
	if (r == 0 && pid == 0) {
		(void) close(FD_PORT);
		r = serve_bridge(gateway, &redirect, control, err);
	}
	redirect_done(&redirect);
	if (r < 0 || pid <= 0)
		return r;
	/* The listeners were the child's; so are the rows, and their lock. */
	(void) close(FD_ROWS);
	return keeper_keep(&gateway->config, FD_PORT, pid, control, err);
}

static int run(struct gateway *gateway, const char *mode, struct resoluto_err *err)
{
	int r;

	if (mode[0] && strcmp(mode, "--redirect") != 0 && strcmp(mode, "--redirect-sweep") != 0)
		return resoluto_fail(err, -EINVAL, "there is no option %s", mode);
	r = read_config(gateway, err);
	if (r == 0 && strcmp(mode, "--redirect-sweep") == 0)
		return keeper_sweep(&gateway->config.bridge, err);
	if (r == 0)
		r = open_all(gateway, err);
	if (r == 0)
		r = strcmp(mode, "--redirect") == 0 ? run_redirect(gateway, err)
		                                    : serve_port(gateway, err);
	return r;
}

int main(int argc, char **argv)
{
	struct resoluto_err err = { 0 };
	struct gateway *gateway = calloc(1, sizeof(*gateway));
	int r;

	if (!gateway)
		return EXIT_REFUSED;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	r = chdir("/") < 0 ? resoluto_fail(&err, -EIO, "go to /")
	                   : run(gateway, argc > 1 ? argv[1] : "", &err);
	if (r < 0)
		fprintf(stderr, "resoluto-gateway: %s: %s\n", err.text, strerrordesc_np(-r));
	done(gateway);
	free(gateway);
	/* What runs at exit, a sanitizer's look at memory, needs what was given up. */
	_exit(r < 0 ? EXIT_REFUSED : 0);
}
