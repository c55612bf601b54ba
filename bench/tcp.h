/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits for what goes between servers: bare TCP on loopback. */
#ifndef ERNIC_BENCH_TCP_H
#define ERNIC_BENCH_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A TCP port of loopback that nobody uses. */
uint16_t bench_tcp_port(void);

/* Messages of SIZE bytes a second over one flow between two threads, each its own send(), from and
 * to memory as guests have it, for SECONDS. CPU: us that both ends spent on one. */
double bench_tcp_flow(double seconds, size_t size, double *cpu);

/*
 * The middle duration, in us, of a message and its echo between processes that sleep in
 * epoll_wait(). RELAYED: it goes to a relay by a UNIX socket, and from there to the echo by TCP, as
 * a doorbell and its message go through two servers.
 */
double bench_tcp_round_trip(bool relayed);

#endif
