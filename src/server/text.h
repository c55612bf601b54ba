/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strict reading of words that a user wrote: numbers, MAC addresses, and what was meant by typos.
 */
#ifndef ERNIC_SERVER_TEXT_H
#define ERNIC_SERVER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replaces control characters by '?', so that TEXT can stand in a line. */
void text_make_line(char *text);

/* Reads all of TEXT as a number in BASE (8 or 10): digits only; no sign, no space, and in base 10
 * no leading zero. Returns false for anything else and for what does not fit. */
bool text_number(const char *text, unsigned base, uint64_t *number);

/* Reads six hexadecimal pairs with colons between them. Returns false for anything else. */
bool text_mac(const char *text, uint8_t mac[6]);

/* Whether an interface may have this address: unicast and not zero. */
bool text_mac_usable(const uint8_t mac[6]);

/* Room for an address as text, terminator included. */
#define TEXT_MAC_SIZE 18
const char *text_mac_format(const uint8_t mac[6], char text[TEXT_MAC_SIZE]);

/* How far apart two words are (Levenshtein), UINT_MAX when one is longer than any name here. */
unsigned text_distance(const char *a, const char *b);

/*
 * The candidate that WORD was probably meant to be, or NULL when none is near. NAME_AT gives the
 * candidates by index and NULL behind the last.
 */
const char *text_nearest(const char *word, const char *(*name_at)(size_t index, const void *arg),
                         const void *arg);

/* 64-bit FNV-1a; start with TEXT_HASH_START. */
#define TEXT_HASH_START 0xcbf29ce484222325ull
uint64_t text_hash(uint64_t hash, const void *data, size_t size);

#endif
