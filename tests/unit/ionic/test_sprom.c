// SPDX-License-Identifier: GPL-2.0-or-later
/* The transceiver of every profile: kind, and an EEPROM whose sums are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_guest.h"

static const struct {
	uint32_t mbps;
	enum ionic_xcvr xcvr;
	unsigned phy, pid, identifier;
} kinds[] = {
        {1000, IONIC_XCVR_COPPER, 1, 73, 0x03},  {10000, IONIC_XCVR_COPPER, 1, 67, 0x03},
        {25000, IONIC_XCVR_COPPER, 1, 3, 0x03},  {40000, IONIC_XCVR_COPPER, 1, 2, 0x0d},
        {50000, IONIC_XCVR_COPPER, 1, 6, 0x11},  {100000, IONIC_XCVR_COPPER, 1, 1, 0x11},
        {200000, IONIC_XCVR_COPPER, 1, 8, 0x11}, {400000, IONIC_XCVR_COPPER, 1, 9, 0x18},
        {1000, IONIC_XCVR_FIBER, 2, 0, 0x03},    {10000, IONIC_XCVR_FIBER, 2, 63, 0x03},
        {25000, IONIC_XCVR_FIBER, 2, 59, 0x03},  {40000, IONIC_XCVR_FIBER, 2, 56, 0x0d},
        {50000, IONIC_XCVR_FIBER, 2, 0, 0x11},   {100000, IONIC_XCVR_FIBER, 2, 50, 0x11},
        {200000, IONIC_XCVR_FIBER, 2, 74, 0x11}, {400000, IONIC_XCVR_FIBER, 2, 81, 0x18},
        {100000, IONIC_XCVR_NONE, 0, 0, 0},
};

static unsigned sum(const uint8_t *rom, unsigned first, unsigned last)
{
	unsigned total = 0;

	for (unsigned i = first; i <= last; i++)
		total += rom[i];
	return total & 0xff;
}

static void check_text(const uint8_t *field, const char *text, size_t size)
{
	size_t len = strlen(text);

	assert_memory_equal(field, text, len);
	for (size_t i = len; i < size; i++)
		assert_int_equal(field[i], ' ');
}

static void check_sfp(const uint8_t *rom)
{
	assert_int_equal(rom[63], sum(rom, 0, 62));
	assert_int_equal(rom[95], sum(rom, 64, 94));
	check_text(rom + 20, "rocm-ernic", 16);
	check_text(rom + 68, "SERIAL", 16);
	assert_int_equal(rom[92] & 0x40, 0); /* no diagnostics, so no second address */
}

static void check_qsfp(const uint8_t *rom)
{
	assert_int_equal(rom[191], sum(rom, 128, 190));
	assert_int_equal(rom[223], sum(rom, 192, 222));
	check_text(rom + 148, "rocm-ernic", 16);
	check_text(rom + 196, "SERIAL", 16);
	assert_int_equal(rom[2] & 0x04, 0x04); /* flat */
	assert_int_equal(rom[128], rom[0]);
}

static void check_qsfp_dd(const uint8_t *rom)
{
	assert_int_equal(rom[222], sum(rom, 128, 221));
	check_text(rom + 129, "rocm-ernic", 16);
	check_text(rom + 166, "SERIAL", 16);
	assert_int_equal(rom[2] & 0x80, 0x80); /* flat */
	assert_int_equal(rom[128], rom[0]);
}

static void test_every_kind(void **state)
{
	struct ionic_profile profile = fake_profile;
	struct ionic_xcvr_status xcvr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		profile.speed_mbps = kinds[i].mbps;
		profile.xcvr = kinds[i].xcvr;
		ionic_xcvr_fill(&profile, "SERIAL", &xcvr);
		assert_int_equal(xcvr.phy, kinds[i].phy);
		assert_int_equal(le16_get(xcvr.pid), kinds[i].pid);
		assert_int_equal(xcvr.sprom[0], kinds[i].identifier);
		assert_int_equal(xcvr.state, kinds[i].xcvr == IONIC_XCVR_NONE ? 0 : 3);
		if (kinds[i].identifier == 0x03)
			check_sfp(xcvr.sprom);
		else if (kinds[i].identifier == 0x18)
			check_qsfp_dd(xcvr.sprom);
		else if (kinds[i].identifier != 0)
			check_qsfp(xcvr.sprom);
	}
}

static void test_long_serial(void **state)
{
	struct ionic_xcvr_status xcvr;

	(void)state;
	ionic_xcvr_fill(&fake_profile, "0123456789abcdefghijklmnopqrstu", &xcvr);
	check_text(xcvr.sprom + 196, "0123456789abcdef", 16);
	check_text(xcvr.sprom + 212, "26", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_kind),
	        cmocka_unit_test(test_long_serial),
	};

	return cmocka_run_group_tests_name("ionic/sprom", tests, NULL, NULL);
}
