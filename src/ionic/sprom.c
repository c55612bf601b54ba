/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transceiver: its kind for the driver (spec ionic-ethernet 10.3), and an EEPROM as a module of
 * that kind has it, so that `ethtool -m` has something sensible to decode.
 *
 * Three layouts: SFP (SFF-8472, address A0h), QSFP (SFF-8636), QSFP-DD (CMIS). All say that they
 * have flat memory and no diagnostics, so that nobody asks for pages that are not there. Codes are
 * those of SFF-8024. The vendor OUI is zero, "unspecified".
 */
#include "ionic_internal.h"

enum layout { SFP, QSFP, QSFP_DD };

#define XCVR_STATE_READ 3 /* module present and its EEPROM read (spec Appendix A) */
#define VENDOR_NAME     "rocm-ernic"
#define VENDOR_REV      "A"
#define DATE_CODE       "260101  " /* year, month, day, lot */

struct module {
	uint32_t mbps;
	uint8_t phy; /* 1 copper, 2 fiber */
	uint16_t pid;
	enum layout layout;
	uint8_t identifier; /* SFF-8024 table 4-1 */
	uint8_t connector;  /* SFF-8024 table 4-3 */
	uint8_t ethernet;   /* compliance bits: SFP byte 3 or 6, QSFP byte 131; CMIS media id */
	uint8_t extended;   /* SFF-8024 table 4-4; CMIS host id (table 4-5) */
	uint8_t baud_250m;  /* per lane, in 250 MBd */
	const char *part;   /* at most 16 characters */
};

#define COPPER       1
#define FIBER        2
#define ID_SFP       0x03
#define ID_QSFP      0x0d
#define ID_QSFP28    0x11
#define ID_QSFP_DD   0x18
#define CONN_LC      0x07
#define CONN_MPO     0x0c
#define CONN_PIGTAIL 0x21
#define CONN_RJ45    0x22
#define CONN_NONE    0x23

/* There is no 1 Gb/s or 50 Gb/s fiber kind in the driver's table: pid 0, shown as FIBRE. */
static const struct module modules[] = {
        {1000, COPPER, 73, SFP, ID_SFP, CONN_RJ45, 0x08, 0x00, 5, "EMU-1G-T"},
        {1000, FIBER, 0, SFP, ID_SFP, CONN_LC, 0x01, 0x00, 5, "EMU-1G-SX"},
        {10000, COPPER, 67, SFP, ID_SFP, CONN_PIGTAIL, 0x00, 0x00, 41, "EMU-10G-CR"},
        {10000, FIBER, 63, SFP, ID_SFP, CONN_LC, 0x10, 0x00, 41, "EMU-10G-SR"},
        {25000, COPPER, 3, SFP, ID_SFP, CONN_PIGTAIL, 0x00, 0x0b, 103, "EMU-25G-CR"},
        {25000, FIBER, 59, SFP, ID_SFP, CONN_LC, 0x00, 0x02, 103, "EMU-25G-SR"},
        {40000, COPPER, 2, QSFP, ID_QSFP, CONN_NONE, 0x08, 0x00, 41, "EMU-40G-CR4"},
        {40000, FIBER, 56, QSFP, ID_QSFP, CONN_MPO, 0x04, 0x00, 41, "EMU-40G-SR4"},
        {50000, COPPER, 6, QSFP, ID_QSFP28, CONN_NONE, 0x80, 0x0b, 103, "EMU-50G-CR2"},
        {50000, FIBER, 0, QSFP, ID_QSFP28, CONN_MPO, 0x80, 0x41, 106, "EMU-50G-SR"},
        {100000, COPPER, 1, QSFP, ID_QSFP28, CONN_NONE, 0x80, 0x0b, 103, "EMU-100G-CR4"},
        {100000, FIBER, 50, QSFP, ID_QSFP28, CONN_MPO, 0x80, 0x02, 103, "EMU-100G-SR4"},
        {200000, COPPER, 8, QSFP, ID_QSFP28, CONN_NONE, 0x80, 0x40, 106, "EMU-200G-CR4"},
        {200000, FIBER, 74, QSFP, ID_QSFP28, CONN_MPO, 0x80, 0x41, 106, "EMU-200G-SR4"},
        {400000, COPPER, 9, QSFP_DD, ID_QSFP_DD, CONN_NONE, 0x01, 0x48, 212, "EMU-400G-CR4"},
        {400000, FIBER, 81, QSFP_DD, ID_QSFP_DD, CONN_MPO, 0x11, 0x4f, 212, "EMU-400G-SR4"},
};

/* ---- pieces that all layouts have ---- */

/* Left-justified, padded with spaces. */
static void put_text(uint8_t *dst, size_t size, const char *text)
{
	size_t len = strnlen(text, size);

	memset(dst, ' ', size);
	memcpy(dst, text, len);
}

/* The low byte of the sum of the bytes FIRST to LAST. */
static uint8_t sum_bytes(const uint8_t *rom, unsigned first, unsigned last)
{
	uint8_t sum = 0;

	for (unsigned i = first; i <= last; i++)
		sum = (uint8_t)(sum + rom[i]);
	return sum;
}

/* ---- layouts ---- */

/* Copper length in metres, or the reach over OM3 or OM4 in units of 10 m. */
#define SFP_LENGTH_CU 3
#define SFP_LENGTH_OM 10

static void sfp_fill(const struct module *module, const char *serial, uint8_t *rom)
{
	bool passive = module->connector == CONN_PIGTAIL;

	rom[0] = module->identifier;
	rom[1] = 0x04; /* identified by two-wire interface only */
	rom[2] = module->connector;
	rom[module->mbps == 1000 ? 6 : 3] = module->ethernet;
	rom[8] = passive ? 0x04 : 0;                  /* passive cable */
	rom[11] = module->mbps == 1000 ? 0x01 : 0x06; /* 8b/10b, 64b/66b */
	/* In units of 100 MBd, or 255 and byte 66 in units of 250 MBd. */
	rom[12] = module->baud_250m > 101 ? 255 : (uint8_t)(module->baud_250m * 5 / 2);
	rom[18] = passive ? SFP_LENGTH_CU : SFP_LENGTH_OM;
	put_text(rom + 20, 16, VENDOR_NAME);
	rom[36] = module->extended;
	put_text(rom + 40, 16, module->part);
	put_text(rom + 56, 4, VENDOR_REV);
	if (module->connector == CONN_LC) {
		rom[60] = 850 >> 8; /* nm */
		rom[61] = 850 & 0xff;
	}
	rom[63] = sum_bytes(rom, 0, 62);
	rom[66] = rom[12] == 255 ? module->baud_250m : 0;
	put_text(rom + 68, 16, serial);
	put_text(rom + 84, 8, DATE_CODE);
	rom[95] = sum_bytes(rom, 64, 94);
}

static void qsfp_fill(const struct module *module, const char *serial, uint8_t *rom)
{
	bool copper = module->phy == COPPER;
	bool fast = module->baud_250m > 101;

	rom[0] = module->identifier;
	rom[1] = 0x08; /* SFF-8636 revision 2.8 and later */
	rom[2] = 0x04; /* flat memory */
	rom[128] = module->identifier;
	rom[130] = module->connector;
	rom[131] = module->ethernet;                       /* 0x80: see the extended code */
	rom[139] = module->baud_250m == 106 ? 0x08 : 0x05; /* PAM4, 64b/66b */
	rom[140] = fast ? 255 : (uint8_t)(module->baud_250m * 5 / 2);
	rom[146] = copper ? 3 : 50;      /* metres of copper, or of OM4 in units of 2 m */
	rom[147] = copper ? 0xa0 : 0x00; /* copper without equalizer, 850 nm VCSEL */
	put_text(rom + 148, 16, VENDOR_NAME);
	put_text(rom + 168, 16, module->part);
	put_text(rom + 184, 2, VENDOR_REV);
	if (!copper) {
		rom[186] = 850 * 20 >> 8; /* nm / 20 */
		rom[187] = 850 * 20 & 0xff;
	}
	rom[191] = sum_bytes(rom, 128, 190);
	rom[192] = module->extended;
	put_text(rom + 196, 16, serial);
	put_text(rom + 212, 8, DATE_CODE);
	rom[222] = fast ? module->baud_250m : 0;
	rom[223] = sum_bytes(rom, 192, 222);
}

static void cmis_fill(const struct module *module, const char *serial, uint8_t *rom)
{
	bool copper = module->phy == COPPER;

	rom[0] = module->identifier;
	rom[1] = 0x50;              /* CMIS 5.0 */
	rom[2] = 0x80;              /* flat memory */
	rom[3] = 0x07;              /* module ready, no interrupt */
	rom[85] = copper ? 3 : 1;   /* passive copper, multi-mode fiber */
	rom[86] = module->extended; /* application 1: host interface, */
	rom[87] = module->ethernet; /* media interface, */
	rom[88] = 0x44;             /* four lanes on either side, */
	rom[89] = 0x01;             /* from lane 1 on */
	rom[90] = 0xff;             /* no more applications */
	rom[128] = module->identifier;
	put_text(rom + 129, 16, VENDOR_NAME);
	put_text(rom + 148, 16, module->part);
	put_text(rom + 164, 2, VENDOR_REV);
	put_text(rom + 166, 16, serial);
	put_text(rom + 182, 8, DATE_CODE);
	rom[202] = copper ? 3 : 0; /* cable of 3 m */
	rom[203] = module->connector;
	rom[212] = copper ? 0x0a : 0x00; /* copper without equalizer, 850 nm VCSEL */
	rom[222] = sum_bytes(rom, 128, 221);
}

static const struct module *module_find(const struct ionic_profile *profile)
{
	uint8_t phy = profile->xcvr == IONIC_XCVR_COPPER ? COPPER : FIBER;

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		if (modules[i].mbps == profile->speed_mbps && modules[i].phy == phy)
			return &modules[i];
	}
	return NULL;
}

void ionic_xcvr_fill(const struct ionic_profile *profile, const char *serial,
                     struct ionic_xcvr_status *xcvr)
{
	static void (*const fill[])(const struct module *, const char *, uint8_t *) = {
	        [SFP] = sfp_fill,
	        [QSFP] = qsfp_fill,
	        [QSFP_DD] = cmis_fill,
	};
	const struct module *module;

	*xcvr = (struct ionic_xcvr_status){.state = 0};
	if (profile->xcvr == IONIC_XCVR_NONE)
		return;
	module = module_find(profile);
	assert(module); /* there is one for every speed of a profile */
	xcvr->state = XCVR_STATE_READ;
	xcvr->phy = module->phy;
	xcvr->pid = le16_make(module->pid);
	fill[module->layout](module, serial, xcvr->sprom);
}
