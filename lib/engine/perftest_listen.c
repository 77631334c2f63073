/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The listening sockets of services that have a tcp_port, on the control thread, and the end of all
 * that perftest's exchange has.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "engine/perftest.h"

/* A socket for IPv6 and IPv4; for IPv4 only, if the host has no IPv6 or the address is one. */
static int
open_listener(const char *address, uint16_t port)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, yes = 1, no = 0;
	bool ipv4 = inet_pton(AF_INET, address, &any4.sin_addr) == 1;
	int fd = ipv4 ? -1 : socket(AF_INET6, type, 0), ret;

	if (!ipv4 && address[0] != '\0' && inet_pton(AF_INET6, address, &any6.sin6_addr) != 1) {
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}

	if (fd >= 0)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	else
		fd = socket(AF_INET, type, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	ret = ipv4 ? -1 : bind(fd, (struct sockaddr *)&any6, sizeof(any6));
	if (ipv4 || (ret != 0 && errno == EINVAL)) /* an IPv4 socket */
		ret = bind(fd, (struct sockaddr *)&any4, sizeof(any4));
	if (ret == 0 && listen(fd, PERFTEST_BACKLOG) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int
perftest_listen(struct engine *e, unsigned int place, const struct svc_config *config,
	struct error *err)
{
	struct perftest_place a = { .place = place, .config = config };
	int ret;

	if (config->tcp_port == 0)
		return 0;
	if (strcmp(config->kind, "perftest") != 0)
		return error_set(err, EINVAL, "tcp_port: %s does not use TCP", config->kind);
	a.fd = open_listener(config->tcp_address, config->tcp_port);
	if (a.fd == -EINVAL)
		return error_set(err, EINVAL,
			"tcp_address: got \"%s\", allowed: an IPv4 or IPv6 address of this host",
			config->tcp_address);
	if (a.fd < 0)
		return error_set(err, -a.fd, "tcp_port: cannot listen on %u: %s", config->tcp_port,
			strerror(-a.fd));
	ret = perftest_call(e->perftest, perftest_tcp_open, &a);
	if (ret == 0) /* at the start of the engine, its thread starts with the workers */
		return e->running ? perftest_thread_start(e, err) : 0;
	close(a.fd);
	return error_set(err, ENOMEM, "tcp_port: no memory to wait for it");
}

void
perftest_unlisten(struct engine *e, unsigned int place, bool sessions)
{
	struct perftest_place a = { .place = place, .sessions = sessions };

	if (e->perftest == NULL)
		return;
	perftest_call(e->perftest, perftest_tcp_shut, &a);
	/* what the service's sessions asked is answered before its place gets another service */
	perftest_serve(e->perftest, PERFTEST_PLACES);
}

static void
perftest_eventfd_close(struct event *event, int fd)
{
	if (event != NULL)
		event_free(event);
	if (fd >= 0)
		close(fd);
}

void
perftest_destroy(struct engine *e)
{
	struct perftest_sockets *t = e->perftest;
	unsigned int i;

	if (t == NULL)
		return;
	perftest_thread_stop(e);
	for (i = 0; i < ENGINE_SERVICE_PLACES; i++)
		perftest_unlisten(e, i, true);
	perftest_eventfd_close(t->told, t->told_fd);
	perftest_eventfd_close(t->asked, t->asked_fd);
	if (t->base != NULL)
		event_base_free(t->base);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	mem_free(&allocator_malloc, t);
	e->perftest = NULL;
}
