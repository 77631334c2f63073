/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_ETCD_HTTP_H
#define STORE_ETCD_HTTP_H

/** @file Private to the client of etcd: what the files that use libcurl share. */

#include <curl/curl.h>

#include "store/etcd_transport.h"

struct etcd_http {
	CURL *easy; /* requests, one at a time, over a connection that stays */
	CURLM *calls; /* for .easy */
	CURLM *multi; /* the watch */
	struct curl_slist *headers;
	char why[CURL_ERROR_SIZE];
};

/* Text that grows; ends with a NUL. */
struct etcd_text {
	char *at;
	size_t len;
	size_t room;
};

/* @retval -EMSGSIZE it would be longer than max */
int etcd_text_add(struct etcd_text *t, const void *bytes, size_t len, size_t max);
/* Set a handle up for a request; the caller sets body and receiver. */
void etcd_prepare(struct etcd_client *c, CURL *easy, unsigned int endpoint, const char *path);
int etcd_curl_error(struct etcd_client *c, unsigned int endpoint, CURLcode code, struct error *err);

#endif
