/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * polca: the appliance. It reads its configuration, starts DPDK, the engine and the control socket,
 * and serves until a signal stops it.
 */

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_common.h>
#include <rte_log.h>
#include <rte_version.h>

#include "base/installed.h"
#include "base/plural.h"
#include "config.h"
#include "config_reload.h"
#include "ctl/ctl.h"
#include "ctl/metrics_http.h"
#include "default_config.h"
#include "eal.h"
#include "log.h"
#include "notify.h"
#include "privileges.h"

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
	       "addresses, CPUs and limits to use. Examples to start from are in %s/.\n"
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
	       "SIGTERM and SIGINT stop polca: requests under way may finish for up to %d s. SIGHUP reads\n"
	       "FILE again, as polca-ctl config reload does.\n"
	       "Exit codes: 0 stopped by a signal, 1 cannot start or continue, 2 wrong usage.\n",
		POLCA_VERSION, example_directory(), DRAIN_MS / 1000);
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
make_socket_directory(struct config *c, struct error *err)
{
	char copy[sizeof(c->socket)];
	const char *dir;

	snprintf(copy, sizeof(copy), "%s", c->socket);
	dir = dirname(copy);
	c->socket_directory_made = mkdir(dir, 0755) == 0;
	if (c->socket_directory_made || errno == EEXIST)
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

static void
polca_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = polca_on_signal };

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
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

/* A second signal stops polca at once. */
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
feed_watchdog(evutil_socket_t fd, short events, void *engine)
{
	(void)fd;
	(void)events;
	if (engine_stalled(engine) == 0)
		notify("WATCHDOG=1");
}

static void
keep_house(evutil_socket_t fd, short events, void *engine)
{
	(void)fd;
	(void)events;
	engine_watch(engine);
}

/* A signal ends the wait of the event loop; polca_on_signal() has noted it. */
static void
end_wait(evutil_socket_t sig, short events, void *arg)
{
	(void)events;
	(void)arg;
	polca_on_signal((int)sig);
}

/* SIGHUP: config_reload() logs what has changed, or why nothing has. */
static void
reload_on_signal(evutil_socket_t sig, short events, void *reload)
{
	struct error ignored;

	(void)sig;
	(void)events;
	notify("RELOADING=1");
	config_reload(reload, true, NULL, NULL, &ignored);
	notify("READY=1");
}

struct polca_events {
	struct event *watch, *watchdog;
	struct event *signal[3];
};

static void
remove_events(struct polca_events *p)
{
	unsigned int i;

	if (p->watch != NULL)
		event_free(p->watch);
	if (p->watchdog != NULL)
		event_free(p->watchdog);
	for (i = 0; i < RTE_DIM(p->signal); i++)
		if (p->signal[i] != NULL)
			event_free(p->signal[i]);
}

static struct event *
every(struct event_base *base, uint64_t ms, event_callback_fn run, struct engine *e)
{
	const struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };
	struct event *event = event_new(base, -1, EV_PERSIST, run, e);

	if (event != NULL)
		event_add(event, &tv);
	return event;
}

static int
add_events(struct config_reload *reload, struct polca_events *p, struct error *err)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct engine *e = reload->e;
	struct event_base *base = engine_event_base(e);
	uint64_t watchdog_ms = notify_watchdog_ms();
	unsigned int i;

	memset(p, 0, sizeof(*p));
	p->watch = every(base, WATCH_MS, keep_house, e);
	if (watchdog_ms > 0)
		p->watchdog = every(base, watchdog_ms, feed_watchdog, e);
	for (i = 0; i < RTE_DIM(signals); i++) {
		p->signal[i] = evsignal_new(base, signals[i],
			signals[i] == SIGHUP ? reload_on_signal : end_wait, reload);
		if (p->signal[i] == NULL || event_add(p->signal[i], NULL) != 0)
			return error_set(err, ENOMEM, "no memory for signals");
	}
	if (p->watch == NULL || (watchdog_ms > 0 && p->watchdog == NULL))
		return error_set(err, ENOMEM, "no memory for timers");
	return 0;
}

/* The group of this name, or (gid_t)-1 for an empty name. */
static int
find_group(const char *key, const char *name, gid_t *group, struct error *err)
{
	const struct group *g = name[0] != '\0' ? getgrnam(name) : NULL;

	if (g == NULL && name[0] != '\0')
		return error_set(err, ENOENT, "%s: this host has no group %s", key, name);
	*group = g != NULL ? g->gr_gid : (gid_t)-1;
	return 0;
}

/* Open the control socket to a group, and the monitoring socket, as configured. */
static int
admit_others(struct ctl *ctl, const struct config *c, struct error *err)
{
	gid_t group, watchers;
	int ret;

	ret = find_group("control.group", c->group, &group, err);
	if (ret == 0)
		ret = find_group("control.monitor_group", c->monitor_group, &watchers, err);
	if (ret == 0)
		ret = ctl_admit(ctl, group, config_mode(c->mode, c->group), err);
	if (ret == 0 && c->monitor[0] != '\0')
		ret = ctl_monitor(ctl, c->monitor, watchers != (gid_t)-1 ? watchers : group, err);
	return ret;
}

/* Beside the control socket, unless the configuration names another path. */
static int
open_verbs(const struct config *c, struct engine *e, struct verbs_server **verbs, struct error *err)
{
	struct verbs_config v = c->verbs;
	char dir[sizeof(c->socket)];
	gid_t group;
	int ret;

	if (!v.enabled)
		return 0;
	snprintf(dir, sizeof(dir), "%s", c->socket);
	if (v.socket[0] == '\0' &&
		(size_t)snprintf(v.socket, sizeof(v.socket), "%s/verbs.sock", dirname(dir)) >=
			sizeof(v.socket))
		return error_set(err, ENAMETOOLONG, "verbs.socket: name one with a shorter path");
	ret = find_group("verbs.group", v.group, &group, err);
	if (ret != 0)
		return ret;
	*verbs = verbs_create(e, &v, group, config_mode(v.mode, v.group), err);
	return *verbs != NULL ? 0 : -1;
}

static int
polca_serve(struct config_reload *reload, struct error *err)
{
	const struct config *c = reload->running;
	struct engine *e = reload->e;
	const char *socket = c->socket;
	struct ctl *ctl = ctl_create(e, socket, err);
	struct metrics_http *metrics = NULL;
	unsigned int ports = link_num_ports(engine_link(e)), workers = engine_workers(e);
	struct verbs_server *verbs = NULL;
	struct polca_events events;
	char status[256];
	int ret = 0;

	if (ctl == NULL)
		return -1;
	ctl_reload(ctl, config_reload, reload);
	ret = add_events(reload, &events, err);
	if (ret == 0)
		ret = admit_others(ctl, c, err);
	if (ret == 0 && c->metrics[0] != '\0') {
		metrics = metrics_http_create(e, c->metrics, err);
		ret = metrics != NULL ? 0 : -1;
	}
	if (ret == 0)
		ret = open_verbs(c, e, &verbs, err);
	if (ret == 0)
		ret = privileges_drop(c, e, verbs, err);
	if (ret == 0)
		ret = engine_start(e, err);
	if (ret != 0) {
		remove_events(&events);
		verbs_destroy(verbs);
		metrics_http_destroy(metrics);
		ctl_destroy(ctl);
		return ret;
	}
	ctl_telemetry(e);
	snprintf(status, sizeof(status), "%u port%s, %u worker%s, control socket %s", ports,
		plural(ports), workers, plural(workers), socket);
	APP_LOG(NOTICE, "ready: %s", status);
	notify("READY=1\nSTATUS=%s", status);
	while (stop_signal == 0 && ret == 0)
		ret = ctl_run_once(ctl, -1);
	remove_events(&events);
	if (ret != 0)
		error_set(err, -ret, "control socket %s: %s", socket, strerror(-ret));
	else
		APP_LOG(NOTICE, "stopping (signal %d)", (int)stop_signal);
	notify("STOPPING=1\nSTATUS=%s", ret != 0 ? err->text : "finishing requests under way");
	ctl_telemetry(NULL);
	verbs_destroy(verbs);
	metrics_http_destroy(metrics);
	ctl_destroy(ctl);
	return ret;
}

static int
polca_run(struct config *c, const struct options *o, struct error *err)
{
	struct config_reload reload = { o->file, c, NULL, o->socket != NULL };
	struct engine *e;
	int ret;

	ret = privileges_check(c, err);
	if (ret == 0)
		ret = make_socket_directory(c, err);
	if (ret == 0)
		ret = eal_start(c, o->eal, err);
	if (ret != 0)
		return ret;
	config_note_log_levels();
	ret = config_apply_log(c, err);
	if (ret != 0) {
		eal_end();
		return ret;
	}
	eal_log_arguments();
	polca_catch_signals();
	e = engine_create(&c->engine, err);
	if (e == NULL) {
		eal_end();
		if (!stopped_waiting)
			return -1;
		APP_LOG(NOTICE, "stopping (signal %d)", (int)stop_signal);
		return 0;
	}
	reload.e = e;
	ret = polca_serve(&reload, err);
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
	if (o.file != NULL && o.file[0] == '\0')
		exit_usage("--config: got \"\", allowed: the path of a file");
	privileges_never_gain();
	signal(SIGHUP, SIG_IGN); /* until polca serves; a closed terminal ends nothing */
	if (o.print_schema)
		return config_print_schema(stdout) == 0 ? 0 : 1;
	if (log_choose(o.log_format, &err) != 0)
		exit_usage(err.text);
	if (config_load(&c, o.file, default_config, &errs) != 0) {
		say_config_errors(&errs);
		return 1;
	}
	if (config_exposes_keys(&c, o.file, line, sizeof(line)))
		log_say(RTE_LOG_WARNING, line);
	c.engine.link.go_on_waiting = polca_go_on_waiting;
	ret = choose_socket(&c, &o, &err);
	if (ret == 0)
		ret = config_check_sockets(&c, &err);
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
