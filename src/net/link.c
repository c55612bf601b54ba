/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks the kernel, by one rtnetlink message, what an interface is.
 *
 * The attributes that the tun driver shows (linux/if_link.h, IFLA_TUN_*) tell a TAP from everything
 * else without opening it. The files in sysfs would say the same, but of the network namespace that
 * was current when sysfs was mounted, which need not be ours.
 */
#include "net/link.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_MAX 32768 /* as the kernel's own advice for netlink readers: 8 KiB or more */

/* The attribute of type TYPE in SIZE bytes of attributes, or NULL. */
static const struct rtattr *find_attr(const struct rtattr *attr, size_t size, unsigned type)
{
	for (int left = (int)size; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if ((attr->rta_type & NLA_TYPE_MASK) == type)
			return attr;
	return NULL;
}

static const struct rtattr *find_nested(const struct rtattr *outer, unsigned type)
{
	return outer ? find_attr(RTA_DATA(outer), RTA_PAYLOAD(outer), type) : NULL;
}

/* An attribute of one byte or four, 0 when it is not there. */
static uint32_t attr_value(const struct rtattr *attr)
{
	uint32_t value = 0;

	if (attr && RTA_PAYLOAD(attr) == sizeof(uint8_t))
		return *(const uint8_t *)RTA_DATA(attr);
	if (attr && RTA_PAYLOAD(attr) == sizeof(value))
		memcpy(&value, RTA_DATA(attr), sizeof(value));
	return value;
}

static void read_reply(const struct nlmsghdr *reply, struct net_link *link)
{
	const struct ifinfomsg *info = NLMSG_DATA(reply);
	const struct rtattr *linkinfo =
	        find_attr(IFLA_RTA(info), IFLA_PAYLOAD(reply), IFLA_LINKINFO);
	const struct rtattr *kind = find_nested(linkinfo, IFLA_INFO_KIND);
	const struct rtattr *data = find_nested(linkinfo, IFLA_INFO_DATA);

	link->index = (unsigned)info->ifi_index;
	if (!kind || RTA_PAYLOAD(kind) < sizeof("tun") ||
	    memcmp(RTA_DATA(kind), "tun", sizeof("tun")) != 0)
		return;
	link->is_tap = attr_value(find_nested(data, IFLA_TUN_TYPE)) == IFF_TAP;
	link->multi_queue = attr_value(find_nested(data, IFLA_TUN_MULTI_QUEUE)) != 0;
	link->open_queues = attr_value(find_nested(data, IFLA_TUN_NUM_QUEUES));
}

static int ask(int fd, unsigned index, struct net_link *link)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} request = {
	        .header = {.nlmsg_len = sizeof(request),
	                   .nlmsg_type = RTM_GETLINK,
	                   .nlmsg_flags = NLM_F_REQUEST},
	        .info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index},
	};
	_Alignas(struct nlmsghdr) char reply[REPLY_MAX];
	const struct nlmsghdr *header = (const struct nlmsghdr *)reply;

	if (send(fd, &request, sizeof(request), 0) < 0)
		return -errno;
	ssize_t size = recv(fd, reply, sizeof(reply), 0);

	if (size < 0)
		return -errno;
	if (!NLMSG_OK(header, (size_t)size))
		return -EBADMSG;
	if (header->nlmsg_type == NLMSG_ERROR)
		return ((const struct nlmsgerr *)NLMSG_DATA(header))->error ?: -EBADMSG;
	if (header->nlmsg_type != RTM_NEWLINK)
		return -EBADMSG;
	read_reply(header, link);
	return 0;
}

int net_link_query(const char *ifname, struct net_link *link)
{
	unsigned index = if_nametoindex(ifname);

	*link = (struct net_link){0};
	if (index == 0)
		return -ENODEV;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	int result = ask(fd, index, link);

	close(fd);
	return result;
}
