/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Integers of a fixed byte order. Hardware and wire structures hold these types, so that a value
 * cannot be used without saying which order it is in; the compiler refuses a plain assignment.
 * They have alignment 1 and may stand anywhere in a packed structure.
 */
#ifndef ERNIC_BASE_BYTES_H
#define ERNIC_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define ERNIC_DEFINE_ORDER(type, bits, to_host, from_host)                                         \
	typedef struct {                                                                           \
		uint8_t raw[(bits) / 8];                                                           \
	} type;                                                                                    \
	static inline uint##bits##_t type##_get(type field)                                        \
	{                                                                                          \
		uint##bits##_t value;                                                              \
		memcpy(&value, field.raw, sizeof(value));                                          \
		return to_host(value);                                                             \
	}                                                                                          \
	static inline type type##_make(uint##bits##_t value)                                       \
	{                                                                                          \
		type field;                                                                        \
		value = from_host(value);                                                          \
		memcpy(field.raw, &value, sizeof(value));                                          \
		return field;                                                                      \
	}

ERNIC_DEFINE_ORDER(le16, 16, le16toh, htole16)
ERNIC_DEFINE_ORDER(le32, 32, le32toh, htole32)
ERNIC_DEFINE_ORDER(le64, 64, le64toh, htole64)
ERNIC_DEFINE_ORDER(be16, 16, be16toh, htobe16)
ERNIC_DEFINE_ORDER(be32, 32, be32toh, htobe32)
ERNIC_DEFINE_ORDER(be64, 64, be64toh, htobe64)

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The structure of the given type that holds MEMBER at the address PTR. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
