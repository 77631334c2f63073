/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_ETCD_TRANSPORT_H
#define STORE_ETCD_TRANSPORT_H

/**
 * @file
 * Private to lib/store: what is below a fleet. etcd_http.c and etcd_watch.c have these functions
 * over libcurl, together with etcd_watch_...() and etcd_client_wake() of etcd_client.h; the
 * simulation (test/sim/fleet_net.c) has its own, with a virtual clock and an etcd that is a model.
 */

#include "store/etcd_client.h"

struct etcd_http;

struct etcd_client {
	struct fleet_config config;
	unsigned int endpoint; /* that answered last */
	unsigned int attempts; /* of the last call: so many times it was sent, or nearly */
	bool authenticated; /* the transport has a token */
	bool borrows; /* it uses another client's token, and never waits for a new one */
	bool token_refused; /* by an endpoint, since etcd_client_token_refused() */
	char token[ETCD_TOKEN_MAX];
	struct etcd_http *http;
};

/* How long a request may take, ms. */
struct etcd_patience {
	unsigned int silence; /* without a byte in either direction */
	unsigned int total;
};

struct etcd_http *etcd_http_create(const struct fleet_config *config);
void etcd_http_destroy(struct etcd_http *h);
/* Requests carry this token from now on. NULL: none */
int etcd_http_token(struct etcd_client *c, const char *token);
/* One request to one endpoint. */
int etcd_send(struct etcd_client *c, unsigned int endpoint, const char *path, const json_t *body,
	struct etcd_patience patience, json_t **reply, struct error *err);
/* A clock that only goes forward. */
uint64_t etcd_now_ms(void);
void etcd_sleep_ms(unsigned int ms);
/* @return 0 or -EIO */
int etcd_random(uint64_t *value);

#endif
