/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strict reading of words that a user wrote: numbers, MAC addresses, and what was meant by typos.
 */
#include "server/text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The longest word that a typo is looked up for. */
#define WORD_MAX 40

void text_make_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

bool text_number(const char *text, unsigned base, uint64_t *number)
{
	uint64_t value = 0;

	if (*text == '\0' || (base == 10 && text[0] == '0' && text[1] != '\0'))
		return false;
	for (; *text; text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*number = value;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool text_mac(const char *text, uint8_t mac[6])
{
	if (strlen(text) != TEXT_MAC_SIZE - 1)
		return false;
	for (unsigned i = 0; i < 6; i++) {
		int high = hex_digit(text[3 * i]), low = hex_digit(text[3 * i + 1]);

		if (high < 0 || low < 0 || (i < 5 && text[3 * i + 2] != ':'))
			return false;
		mac[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

bool text_mac_usable(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return (mac[0] & 1) == 0 && memcmp(mac, zero, sizeof(zero)) != 0;
}

const char *text_mac_format(const uint8_t mac[6], char text[TEXT_MAC_SIZE])
{
	snprintf(text, TEXT_MAC_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
	         mac[3], mac[4], mac[5]);
	return text;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

unsigned text_distance(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);
	unsigned row[WORD_MAX + 1];

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return UINT_MAX;
	for (unsigned j = 0; j <= b_len; j++)
		row[j] = j;
	for (unsigned i = 1; i <= a_len; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_len];
}

const char *text_nearest(const char *word, const char *(*name_at)(size_t index, const void *arg),
                         const void *arg)
{
	/* Beyond a third of its letters a word is another word. */
	unsigned best_distance = (unsigned)(strnlen(word, WORD_MAX) / 3) + 2;
	const char *best = NULL, *name;

	for (size_t i = 0; (name = name_at(i, arg)) != NULL; i++) {
		unsigned distance = text_distance(word, name);

		if (distance < best_distance) {
			best_distance = distance;
			best = name;
		}
	}
	return best;
}

uint64_t text_hash(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull;
	return hash;
}
