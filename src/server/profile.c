/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NIC profiles: the shape of the emulated NIC, merged from layers.
 *
 * Theory of operation
 *
 * Everything known about a key stands in profile_keys: where it is written, what it accepts, which
 * field it sets, what `compat` says. Parsing (profile_ini.c), printing, hashing and the manual walk
 * this table; the built-in profiles are INI text over compat and go through the same parser as a
 * user's file.
 *
 * A layer is applied to a copy that replaces the profile when all of it was good. Rules between
 * keys are checked once, after the last layer, because a later layer may complete an earlier one.
 *
 * The number of vectors may be "auto", which depends on other keys. It stays 0 in the merged
 * values, so that layers and --eth-queues may still move it, and becomes a number at the end.
 */
#include "server/profile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "server/text.h"

#define VALUE_TEXT_MAX 64

static const struct profile_choice asic_types[] = {
        {"none", IONIC_ASIC_NONE},     {"capri", IONIC_ASIC_CAPRI},   {"elba", IONIC_ASIC_ELBA},
        {"giglio", IONIC_ASIC_GIGLIO}, {"salina", IONIC_ASIC_SALINA}, {NULL, 0},
};
static const struct profile_choice speeds[] = {
        {"1000", 1000},     {"10000", 10000},   {"25000", 25000},
        {"40000", 40000},   {"50000", 50000},   {"100000", 100000},
        {"200000", 200000}, {"400000", 400000}, {NULL, 0},
};
static const struct profile_choice xcvrs[] = {
        {"copper", IONIC_XCVR_COPPER},
        {"fiber", IONIC_XCVR_FIBER},
        {"none", IONIC_XCVR_NONE},
        {NULL, 0},
};
static const struct profile_choice switches[] = {{"on", true}, {"off", false}, {NULL, 0}};
static const struct profile_choice automatic[] = {{"auto", 0}, {NULL, 0}};

#define FIELD(member)                                                                              \
	.offset = offsetof(struct ionic_profile, member),                                          \
	.size = sizeof(((struct ionic_profile *)NULL)->member)
#define NUMBER(low, high) .kind = PROFILE_NUMBER, .min = (low), .max = (high)
#define CHOICE(list)      .kind = PROFILE_CHOICE, .choices = (list)
#define OFFLOAD(member, text)                                                                      \
	{                                                                                          \
		"offload", #member, "off", CHOICE(switches), FIELD(member), .help = (text)         \
	}

/* Manual, The ionic Device, NIC Profiles. */
const struct profile_key profile_keys[] = {
        {"identity", "asic_type", "none", CHOICE(asic_types), FIELD(asic_type),
         .help = "ASIC type in the device information"},
        {"identity", "asic_rev", "0", NUMBER(0, 255), FIELD(asic_rev),
         .help = "ASIC revision in the device information"},
        {"identity", "fw_version", "rocm-ernic-1.0", .kind = PROFILE_TEXT, .min = 1,
         .max = IONIC_FW_VERSION_MAX, FIELD(fw_version),
         .help = "firmware version: ethtool -i firmware-version"},
        {"link", "speed_mbps", "100000", CHOICE(speeds), FIELD(speed_mbps),
         .help = "link speed of port and LIF, in Mb/s: ethtool Speed"},
        {"link", "xcvr", "copper", CHOICE(xcvrs), FIELD(xcvr),
         .help = "transceiver: ethtool Port is Direct Attach Copper, FIBRE or None"},
        {"link", "mtu_max", "9198", NUMBER(1500, 9582), FIELD(mtu_max),
         .help = "largest MTU that the guest may set, in bytes; the frame is 18 longer"},
        {"stats", "interval_ms", "1000",
         NUMBER(PROFILE_STATS_INTERVAL_MS_MIN, PROFILE_STATS_INTERVAL_MS_MAX),
         FIELD(stats_interval_ms),
         .help = "how often counters are rewritten in guest memory and in the stats file"},
        {"queues", "eth", "4", NUMBER(PROFILE_ETH_QUEUES_MIN, PROFILE_ETH_QUEUES_MAX),
         FIELD(eth_queues), .help = "Ethernet queue pairs: the most that ethtool -L may set"},
        {"queues", "rdma_eqs", "32", NUMBER(4, IONIC_RDMA_EQS_MAX), FIELD(rdma_eqs),
         .help = "RDMA event queues"},
        {"queues", "intr_vectors", "32", NUMBER(2, IONIC_INTRS_MAX), .choices = automatic,
         FIELD(intr_vectors), .help = "MSI-X vectors; auto is 1 + queues.eth + queues.rdma_eqs"},
        OFFLOAD(tx_csum, "fill transmit checksums"),
        OFFLOAD(tso, "TCP segmentation for IPv4 and IPv6; needs tx_csum and sg"),
        OFFLOAD(sg, "scatter-gather in transmit and receive"),
        OFFLOAD(rx_csum, "check received checksums"),
        OFFLOAD(rx_hash, "receive hash with the guest's key and indirection table"),
        OFFLOAD(vlan, "insert, strip and filter VLAN tags"),
};
const size_t profile_key_count = ARRAY_SIZE(profile_keys);

#define OFFLOADS_ON                                                                                \
	"[offload]\ntx_csum = on\ntso = on\nsg = on\nrx_csum = on\nrx_hash = on\nvlan = on\n"
#define OFFLOADS_OFF                                                                               \
	"[offload]\ntx_csum = off\ntso = off\nsg = off\nrx_csum = off\nrx_hash = off\nvlan = "     \
	"off\n"

/* `compat` is the column of that name above, all of it. The others set what they are about. */
const struct profile_builtin profile_builtins[] = {
        {"compat", "4 queues, 32 event queues, 32 vectors, 100 Gb/s copper, no offloads", ""},
        {"small-vm", "compat for a guest with few vCPUs: 2 queues, 4 event queues, 7 vectors",
         "[queues]\neth = 2\nrdma_eqs = 4\nintr_vectors = auto\n" OFFLOADS_OFF},
        {"generic-100g", "16 queues, 32 event queues, 49 vectors, 100 Gb/s fiber, all offloads",
         "[link]\nspeed_mbps = 100000\nxcvr = fiber\n"
         "[queues]\neth = 16\nrdma_eqs = 32\nintr_vectors = auto\n" OFFLOADS_ON},
        {"generic-400g", "64 queues, 32 event queues, 97 vectors, 400 Gb/s fiber, all offloads",
         "[link]\nspeed_mbps = 400000\nxcvr = fiber\n"
         "[queues]\neth = 64\nrdma_eqs = 32\nintr_vectors = auto\n" OFFLOADS_ON},
};
const size_t profile_builtin_count = ARRAY_SIZE(profile_builtins);

/* ---- one key ---- */

static void field_store(struct ionic_profile *values, const struct profile_key *key, uint32_t value)
{
	void *field = (char *)values + key->offset;

	if (key->size == sizeof(uint8_t))
		*(uint8_t *)field = (uint8_t)value;
	else
		memcpy(field, &value, sizeof(value));
}

static uint32_t field_load(const struct ionic_profile *values, const struct profile_key *key)
{
	const void *field = (const char *)values + key->offset;
	uint32_t value;

	if (key->size == sizeof(uint8_t))
		return *(const uint8_t *)field;
	memcpy(&value, field, sizeof(value));
	return value;
}

void profile_key_range(const struct profile_key *key, char *text, size_t size)
{
	size_t used = 0;

	for (const struct profile_choice *choice = key->choices; choice && choice->name; choice++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
		                         choice->name);
	assert(used < size);
	if (key->kind == PROFILE_CHOICE)
		return;
	snprintf(text + used, size - used, "%s%" PRIu32 " to %" PRIu32 "%s", used ? ", or " : "",
	         key->min, key->max,
	         key->kind == PROFILE_TEXT ? " printable ASCII characters" : "");
}

static int refuse_range(const struct profile_key *key, const char *text, struct error_text *error)
{
	char range[160];

	profile_key_range(key, range, sizeof(range));
	return error_set(error, -EINVAL, "'%.64s' is not accepted; give %s%s", text, range,
	                 strpbrk(text, ";#") ? " (a comment needs a line of its own)" : "");
}

/* The guest's tools show the version in one column, and it must survive being written as INI. */
static int set_text(struct ionic_profile *values, const struct profile_key *key, const char *text,
                    struct error_text *error)
{
	size_t len = strlen(text);

	if (len < key->min || len > key->max)
		return refuse_range(key, text, error);
	for (const char *c = text; *c; c++)
		if (*c < 0x20 || *c > 0x7e || *c == '\\')
			return error_set(error, -EINVAL,
			                 "'%.64s' has a character that is not allowed; give "
			                 "printable ASCII without \\",
			                 text);
	if (text[0] == ' ' || text[len - 1] == ' ')
		return error_set(error, -EINVAL, "'%.64s' begins or ends with a space; remove it",
		                 text);
	assert(len < key->size);
	memset((char *)values + key->offset, 0, key->size);
	memcpy((char *)values + key->offset, text, len);
	return 0;
}

int profile_set(struct ionic_profile *values, const struct profile_key *key, const char *text,
                struct error_text *error)
{
	uint64_t number;

	if (key->kind == PROFILE_TEXT)
		return set_text(values, key, text, error);
	for (const struct profile_choice *choice = key->choices; choice && choice->name; choice++)
		if (strcmp(choice->name, text) == 0) {
			field_store(values, key, choice->value);
			return 0;
		}
	if (key->kind == PROFILE_CHOICE || !text_number(text, 10, &number) || number < key->min ||
	    number > key->max)
		return refuse_range(key, text, error);
	field_store(values, key, (uint32_t)number);
	return 0;
}

static void key_text(const struct ionic_profile *values, const struct profile_key *key,
                     char text[VALUE_TEXT_MAX])
{
	uint32_t value;

	if (key->kind == PROFILE_TEXT) {
		snprintf(text, VALUE_TEXT_MAX, "%s", (const char *)values + key->offset);
		return;
	}
	value = field_load(values, key);
	snprintf(text, VALUE_TEXT_MAX, "%" PRIu32, value);
	for (const struct profile_choice *choice = key->choices; choice && choice->name; choice++)
		if (choice->value == value)
			snprintf(text, VALUE_TEXT_MAX, "%s", choice->name);
}

/* ---- layers ---- */

static void set_compat(struct ionic_profile *values)
{
	struct error_text error;

	for (size_t i = 0; i < profile_key_count; i++) {
		int failed = profile_set(values, &profile_keys[i], profile_keys[i].compat, &error);

		assert(failed == 0);
		(void)failed;
	}
}

void profile_init(struct nic_profile *profile)
{
	memset(profile, 0, sizeof(*profile));
	set_compat(&profile->values);
	snprintf(profile->chain, sizeof(profile->chain), "compat");
}

int profile_note_layer(struct nic_profile *profile, const char *name, struct error_text *error)
{
	size_t used = strlen(profile->chain), left = sizeof(profile->chain) - used;

	if (strcmp(name, profile->chain) == 0)
		return 0; /* compat, said first: it is the base anyway */
	if ((size_t)snprintf(profile->chain + used, left, " + %s", name) >= left) {
		profile->chain[used] = '\0';
		return error_set(error, -E2BIG,
		                 "--nic-profile %.64s...: the names of all layers together exceed "
		                 "%d bytes; use shorter paths or fewer layers",
		                 name, PROFILE_CHAIN_MAX);
	}
	text_make_line(profile->chain + used);
	return 0;
}

/* Reads a file of up to PROFILE_FILE_MAX bytes. Returns its size or a negative errno. */
static ssize_t read_file(const char *path, char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(fd, text + size, PROFILE_FILE_MAX + 1 - size)) > 0)
		size += (size_t)got;
	got = got < 0 ? -errno : 0;
	close(fd);
	if (size > PROFILE_FILE_MAX)
		return -EFBIG;
	return got < 0 ? got : (ssize_t)size;
}

static int apply_file(struct nic_profile *profile, const char *path, struct error_text *error)
{
	static char text[PROFILE_FILE_MAX + 1]; /* start-up only, one thread */
	ssize_t size = read_file(path, text);

	if (size == -EFBIG)
		return error_set(error, -EFBIG,
		                 "--nic-profile %.300s: more than %d bytes; this is no profile",
		                 path, PROFILE_FILE_MAX);
	if (size < 0)
		return error_set(error, (int)size,
		                 "--nic-profile %.300s: cannot be read (%s); give a readable file",
		                 path, strerror((int)-size));
	return profile_apply_text(profile, path, text, (size_t)size, error);
}

static const char *builtin_name_at(size_t index, const void *arg)
{
	(void)arg;
	return index < profile_builtin_count ? profile_builtins[index].name : NULL;
}

static int apply_builtin(struct nic_profile *profile, const char *name, struct error_text *error)
{
	const char *near = text_nearest(name, builtin_name_at, NULL);

	for (size_t i = 0; i < profile_builtin_count; i++)
		if (strcmp(profile_builtins[i].name, name) == 0)
			return profile_apply_text(profile, name, profile_builtins[i].text,
			                          strlen(profile_builtins[i].text), error);
	return error_set(error, -ENOENT,
	                 "--nic-profile %.100s: no built-in profile has this name; %s%s%scompat, "
	                 "small-vm, generic-100g, generic-400g are built in, and a file needs a / "
	                 "in its name or .ini at its end",
	                 name, near ? "did you mean " : "", near ? near : "", near ? "? " : "");
}

int profile_apply(struct nic_profile *profile, const char *name, struct error_text *error)
{
	struct nic_profile merged = *profile;
	size_t len = strlen(name);
	int failed = 0;

	if (strchr(name, '/') || (len >= 4 && strcmp(name + len - 4, ".ini") == 0))
		failed = apply_file(&merged, name, error);
	else if (strcmp(name, "compat") == 0)
		set_compat(&merged.values);
	else
		failed = apply_builtin(&merged, name, error);
	if (!failed)
		failed = profile_note_layer(&merged, name, error);
	if (!failed)
		*profile = merged;
	return failed;
}

/* ---- the whole ---- */

int profile_check(const struct nic_profile *profile, struct error_text *error)
{
	const struct ionic_profile *values = &profile->values;
	const char *missing = !values->tx_csum ? "tx_csum" : "sg";

	/* The driver cannot hand over a large segment without the other two. */
	if (values->tso && !(values->tx_csum && values->sg))
		return error_set(error, -EINVAL,
		                 "--nic-profile: offload.tso = on needs offload.%s = on (layers: "
		                 "%s); switch offload.%s on or offload.tso off",
		                 missing, profile->chain, missing);
	return 0;
}

uint32_t profile_full_vectors(const struct ionic_profile *values)
{
	return 1 + values->eth_queues + values->rdma_eqs;
}

void profile_resolve(const struct nic_profile *profile, struct ionic_profile *values)
{
	*values = profile->values;
	if (values->intr_vectors == 0)
		values->intr_vectors = profile_full_vectors(values);
	assert(values->intr_vectors <= IONIC_INTRS_MAX);
}

uint64_t profile_hash(const struct nic_profile *profile)
{
	char value[VALUE_TEXT_MAX], line[2 * VALUE_TEXT_MAX];
	uint64_t hash = TEXT_HASH_START;
	struct ionic_profile values;

	profile_resolve(profile, &values);
	for (size_t i = 0; i < profile_key_count; i++) {
		key_text(&values, &profile_keys[i], value);
		int size = snprintf(line, sizeof(line), "%s.%s=%s\n", profile_keys[i].section,
		                    profile_keys[i].name, value);

		assert((size_t)size < sizeof(line));
		hash = text_hash(hash, line, (size_t)size);
	}
	return hash;
}

void profile_print(const struct nic_profile *profile, FILE *file)
{
	const char *section = "";
	char value[VALUE_TEXT_MAX];

	fprintf(file, "# NIC profile: %s\n# hash: %016" PRIx64 "\n", profile->chain,
	        profile_hash(profile));
	for (size_t i = 0; i < profile_key_count; i++) {
		const struct profile_key *key = &profile_keys[i];

		if (strcmp(section, key->section) != 0)
			fprintf(file, "\n[%s]\n", key->section);
		section = key->section;
		key_text(&profile->values, key, value);
		fprintf(file, "%s = %s\n", key->name, value);
	}
}
