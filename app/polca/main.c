/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * polca: the appliance. It reads its configuration, starts DPDK, the engine and the control socket,
 * and serves until a signal stops it.
 */

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_log.h>
#include <rte_version.h>

#include "config.h"
#include "ctl/ctl.h"
#include "default_config.h"
#include "eal.h"
#include "engine/verbs_cm.h"
#include "log.h"
#include "notify.h"

#define DRAIN_MS 2000
#define WATCH_MS 200

RTE_LOG_REGISTER(app_logtype, polca.app, INFO);
#define APP_LOG(level, fmt, ...)                                                                   \
	rte_log(RTE_LOG_##level, app_logtype, "polca: " fmt "\n", ##__VA_ARGS__)

struct options {
	const char *file;
	const char *socket;
	const char *eal;
	const char *log_format;
	bool print_config;
	bool print_schema;
};

static volatile sig_atomic_t stop_signal;
/* engine_create() failed because polca_go_on_waiting() returned false */
static bool stopped_waiting;

static void
polca_on_signal(int sig)
{
	stop_signal = sig;
}

static void
polca_help(void)
{
	printf("polca %s: a software RDMA channel adapter in user space, on DPDK\n"
	       "\n"
	       "usage: polca [-c FILE] [-s SOCKET] [--eal \"ARGS\"]\n"
	       "\n"
	       "Without -c it needs no NIC, no hugepages and no privileges: two ports, 192.0.2.1 and\n"
	       "192.0.2.2, are joined back to back inside the process. With -c, FILE selects the NICs,\n"
	       "addresses, CPUs and limits to use; the files in config/ are examples to start from.\n"
	       "\n"
	       "  -c, --config FILE   JSON configuration\n"
	       "  -s, --socket PATH   control socket, instead of the configuration's\n"
	       "      --eal \"ARGS\"    further arguments for DPDK's EAL, separated by blanks\n"
	       "      --log-format F  plain, time (with the time of day), journal (with systemd's\n"
	       "                      priorities) or json; default: journal under systemd, time on a\n"
	       "                      terminal, else plain\n"
	       "      --print-config  check the configuration, print it with all defaults, and exit\n"
	       "      --print-schema  print the configuration's JSON schema, and exit\n"
	       "  -v, --version       print versions, and exit\n"
	       "  -h, --help          print this, and exit\n"
	       "\n"
	       "A first session, with polca running in another terminal:\n"
	       "  polca-ctl port list           the ports and their addresses\n"
	       "  polca-ctl --help              what can be done with them\n"
	       "\n"
	       "SIGTERM, SIGINT and SIGHUP (unless ignored, see nohup) stop polca: requests under way\n"
	       "may finish for up to %d s.\n"
	       "Exit codes: 0 stopped by a signal, 1 cannot start or continue, 2 wrong usage.\n",
		POLCA_VERSION, DRAIN_MS / 1000);
}

static void
exit_usage(const char *text)
{
	fprintf(stderr, "polca: %s\nTry 'polca --help'.\n", text);
	exit(2);
}

static void
parse_options(int argc, char **argv, struct options *o)
{
	enum { OPT_EAL = 256, OPT_LOG_FORMAT, OPT_PRINT_CONFIG, OPT_PRINT_SCHEMA };
	static const struct option longs[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "socket", required_argument, NULL, 's' },
		{ "eal", required_argument, NULL, OPT_EAL },
		{ "log-format", required_argument, NULL, OPT_LOG_FORMAT },
		{ "print-config", no_argument, NULL, OPT_PRINT_CONFIG },
		{ "print-schema", no_argument, NULL, OPT_PRINT_SCHEMA },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "c:s:vh", longs, NULL)) != -1) {
		switch (opt) {
		case 'c':
			o->file = optarg;
			break;
		case 's':
			o->socket = optarg;
			break;
		case OPT_EAL:
			o->eal = optarg;
			break;
		case OPT_LOG_FORMAT:
			o->log_format = optarg;
			break;
		case OPT_PRINT_CONFIG:
			o->print_config = true;
			break;
		case OPT_PRINT_SCHEMA:
			o->print_schema = true;
			break;
		case 'v':
			printf("polca %s, %s\n", POLCA_VERSION, rte_version());
			exit(0);
		case 'h':
			polca_help();
			exit(0);
		default:
			fprintf(stderr, "Try 'polca --help'.\n");
			exit(2);
		}
	}
	if (optind < argc)
		exit_usage("arguments other than options are not allowed");
}

/* Create or accept a directory under /tmp only if no other user can write to it. */
static int
private_dir(const char *path, struct error *err)
{
	struct stat st;

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	if (lstat(path, &st) != 0)
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return error_set(err, EPERM,
			"%s: other users can write here: remove it, set XDG_RUNTIME_DIR, or use -s",
			path);
	return 0;
}

static int
default_socket(char *path, size_t size, struct error *err)
{
	const char *dir = getenv("XDG_RUNTIME_DIR"), *service = getenv("RUNTIME_DIRECTORY");
	int ret = 0;

	if (service != NULL && service[0] == '/') { /* as a systemd service, of whatever user */
		snprintf(path, size, "%.*s/polca.sock", (int)strcspn(service, ":"), service);
		return 0;
	}
	if (geteuid() == 0) {
		snprintf(path, size, "/run/polca/polca.sock");
		return 0;
	}
	if (dir != NULL && dir[0] == '/') {
		snprintf(path, size, "%s/polca.sock", dir);
		return 0;
	}
	snprintf(path, size, "/tmp/polca-%u", (unsigned int)geteuid());
	ret = private_dir(path, err);
	snprintf(path, size, "/tmp/polca-%u/polca.sock", (unsigned int)geteuid());
	return ret;
}

/*
 * Create the socket's directory early: memif and vhost may place sockets there, which are opened
 * first.
 */
static int
make_socket_directory(const char *socket, struct error *err)
{
	char copy[108];
	const char *dir;

	snprintf(copy, sizeof(copy), "%s", socket);
	dir = dirname(copy);
	if (mkdir(dir, 0755) == 0 || errno == EEXIST)
		return 0;
	return error_set(err, errno, "control.socket: cannot create %s: %s; create it, or use -s",
		dir, strerror(errno));
}

static int
choose_socket(struct config *c, const struct options *o, struct error *err)
{
	if (o->socket == NULL)
		return c->socket[0] != '\0' ? 0 : default_socket(c->socket, sizeof(c->socket), err);
	if (strlen(o->socket) >= sizeof(c->socket))
		return error_set(err, EINVAL, "--socket: got %zu bytes, allowed up to %zu",
			strlen(o->socket), sizeof(c->socket) - 1);
	strcpy(c->socket, o->socket);
	return 0;
}

/* SIGHUP is sent when the terminal is closed. If it is ignored (nohup), it stays ignored. */
static void
polca_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = polca_on_signal }, inherited;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	if (sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
}

/* Callback of link_open(): wait for the peer until the first signal. */
static bool
polca_go_on_waiting(const char *what)
{
	if (what != NULL)
		APP_LOG(NOTICE, "%s", what);
	else
		stopped_waiting = stop_signal != 0;
	return stop_signal == 0;
}

/* A second signal stops polca at once, except SIGHUP, which both the kernel and the shell send. */
static void
release_signals(void)
{
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
}

/*
 * Feed the service manager's watchdog, but not while a worker is stalled: then the service manager
 * restarts Polca, as it does when this thread hangs.
 */
static void
feed_watchdog(const struct engine *e, uint64_t every_ms, uint64_t *last)
{
	uint64_t now = rte_get_tsc_cycles();

	if (every_ms == 0 || now - *last < every_ms * rte_get_tsc_hz() / 1000)
		return;
	if (engine_stalled(e) != 0)
		return;
	notify("WATCHDOG=1");
	*last = now;
}

static int
polca_serve(struct engine *e, const char *socket, struct error *err)
{
	struct ctl *ctl = ctl_create(e, socket, err);
	uint64_t watchdog_ms = notify_watchdog_ms(), fed = 0;
	int ret = 0;

	if (ctl == NULL)
		return -1;
	ret = ctl_wait_for(ctl, engine_sockets_fd(e), engine_sockets_run, e, err);
	if (ret != 0) {
		ctl_destroy(ctl);
		return ret;
	}
	ctl_telemetry(e);
	APP_LOG(NOTICE, "ready: %u ports, %u workers, control socket %s",
		link_num_ports(engine_link(e)), engine_workers(e), socket);
	notify("READY=1\nSTATUS=%u ports, %u workers, control socket %s",
		link_num_ports(engine_link(e)), engine_workers(e), socket);
	while (stop_signal == 0 && ret == 0) {
		ret = ctl_run_once(ctl, WATCH_MS);
		engine_watch(e);
		feed_watchdog(e, watchdog_ms, &fed);
	}
	if (ret != 0)
		error_set(err, -ret, "control socket %s: %s", socket, strerror(-ret));
	else
		APP_LOG(NOTICE, "stopping (signal %d)", (int)stop_signal);
	notify("STOPPING=1\nSTATUS=%s", ret != 0 ? err->text : "finishing requests under way");
	ctl_telemetry(NULL);
	ctl_destroy(ctl);
	return ret;
}

static int
polca_run(const struct config *c, const struct options *o, struct error *err)
{
	struct engine *e;
	int ret;

	ret = make_socket_directory(c->socket, err);
	if (ret == 0)
		ret = eal_start(c, o->eal, err);
	if (ret != 0)
		return ret;
	ret = config_apply_log(c, err);
	if (ret != 0) {
		eal_end();
		return ret;
	}
	polca_catch_signals();
	e = engine_create(&c->engine, err);
	if (e == NULL) {
		eal_end();
		if (!stopped_waiting)
			return -1;
		APP_LOG(NOTICE, "stopping (signal %d)", (int)stop_signal);
		return 0;
	}
	ret = engine_start(e, err);
	if (ret == 0)
		ret = polca_serve(e, c->socket, err);
	release_signals();
	engine_stop(e, DRAIN_MS);
	engine_destroy(e);
	eal_end();
	return ret;
}

static void
say_config_errors(const struct config_errors *errs)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	config_errors_print(errs, f != NULL ? f : stderr);
	if (f == NULL)
		return;
	fclose(f);
	log_say(RTE_LOG_ERR, text);
	free(text);
}

int
main(int argc, char **argv)
{
	char line[sizeof(struct error) + 8];
	struct error err = { "" };
	struct options o = { NULL };
	static struct config_errors errs;
	static struct config c;
	int ret;

	parse_options(argc, argv, &o);
	if (o.print_schema)
		return config_print_schema(stdout) == 0 ? 0 : 1;
	if (log_choose(o.log_format, &err) != 0)
		exit_usage(err.text);
	if (config_load(&c, o.file, default_config, &errs) != 0) {
		say_config_errors(&errs);
		return 1;
	}
	c.engine.link.go_on_waiting = polca_go_on_waiting;
	ret = choose_socket(&c, &o, &err);
	if (ret == 0 && o.print_config)
		return config_print(&c, stdout) == 0 ? 0 : 1;
	if (ret == 0)
		ret = polca_run(&c, &o, &err);
	if (ret == 0)
		return 0;
	snprintf(line, sizeof(line), "polca: %s", err.text);
	log_say(RTE_LOG_ERR, line);
	return 1;
}
