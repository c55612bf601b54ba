/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmocka with what it wants included before it. */
#ifndef ERNIC_TESTS_UNIT_VFIO_UNIT_H
#define ERNIC_TESTS_UNIT_VFIO_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Numbers that are the same in every run: xorshift; STATE is anything but 0 at first. */
static inline uint32_t unit_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

#endif
