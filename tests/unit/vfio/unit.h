/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmocka with what it wants included before it. */
#ifndef ERNIC_TESTS_UNIT_VFIO_UNIT_H
#define ERNIC_TESTS_UNIT_VFIO_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
