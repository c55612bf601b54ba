/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells a service manager how far the program is (sd_notify(3), without the library). */
#ifndef ERNIC_SERVER_NOTIFY_H
#define ERNIC_SERVER_NOTIFY_H

/* Sends STATE, such as "READY=1", where $NOTIFY_SOCKET points. Does nothing without it. */
void notify_manager(const char *state);

#endif
