// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The interrupt model (spec ionic-ethernet 2.4): single steps, and drivers at random.
 *
 * The random drivers do what the two real ones do, with small budgets: they lose count in the same
 * corners. No completion may stay unseen, and no interrupt may come without a reason for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_guest.h"

static struct fake_guest guest;

static int setup(void **state)
{
	(void)state;
	fake_guest_create(&guest, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_guest_destroy(&guest);
	return 0;
}

#define UNMASK     0x10000
#define RESET_COAL 0x20000

static void reg_write(unsigned vector, unsigned reg, uint32_t value)
{
	fake_write(&guest, 0x2000 + 32 * vector + reg, value, 4);
}

static uint32_t credits(unsigned vector)
{
	return (uint32_t)fake_read(&guest, 0x2000 + 32 * vector + 8, 4);
}

static void post(unsigned vector, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ionic_intr_post(guest.dev, vector, 1);
}

static void test_masked_collects(void **state)
{
	(void)state;
	post(3, 2);
	assert_int_equal(guest.msix[3], 0);
	assert_int_equal(credits(3), 2);
	reg_write(3, IONIC_INTR_MASK_ASSERT, 1);
	reg_write(3, IONIC_INTR_MASK, 0); /* delivers what came while masked */
	assert_int_equal(guest.msix[3], 1);
	assert_int_equal(fake_read(&guest, 0x2000 + 32 * 3 + 4, 4), 1);
	post(3, 5); /* masked again by the interrupt */
	assert_int_equal(guest.msix[3], 1);
	reg_write(3, IONIC_INTR_CREDITS, 7 | UNMASK | RESET_COAL);
	assert_int_equal(guest.msix[3], 1);
	assert_int_equal(credits(3), 0);
	assert_int_equal(guest.msix[0], 0);
}

/* UNMASK depends on receive work only: transmit completions that are left raise it again. */
static void test_left_over_credits_fire_again(void **state)
{
	(void)state;
	reg_write(1, IONIC_INTR_MASK_ASSERT, 1);
	reg_write(1, IONIC_INTR_MASK, 0);
	post(1, 300);
	assert_int_equal(guest.msix[1], 1);
	reg_write(1, IONIC_INTR_CREDITS, 256 | UNMASK | RESET_COAL);
	assert_int_equal(guest.msix[1], 2);
	assert_int_equal(credits(1), 44);
}

/* Without UNMASK credits go, the mask stays. */
static void test_return_without_unmask(void **state)
{
	(void)state;
	post(1, 10);
	reg_write(1, IONIC_INTR_CREDITS, 4 | RESET_COAL);
	assert_int_equal(credits(1), 6);
	assert_int_equal(guest.msix[1], 0);
}

static void test_clean_sequence(void **state)
{
	(void)state;
	post(2, 9);
	reg_write(2, IONIC_INTR_CREDITS, (credits(2) & 0xffff) | RESET_COAL);
	assert_int_equal(credits(2), 0);
	reg_write(2, IONIC_INTR_MASK, 0);
	assert_int_equal(guest.msix[2], 0);
}

static void test_return_of_too_much(void **state)
{
	(void)state;
	post(2, 3);
	reg_write(2, IONIC_INTR_CREDITS, 0xffff | UNMASK);
	assert_int_equal(credits(2), 0);
	assert_int_equal(guest.msix[2], 0);
}

/* A return of 0 with UNMASK forgets what was there at the last interrupt, and only that. */
static void test_zero_return(void **state)
{
	(void)state;
	reg_write(4, IONIC_INTR_MASK_ASSERT, 1);
	reg_write(4, IONIC_INTR_MASK, 0);
	post(4, 1);
	assert_int_equal(guest.msix[4], 1);
	reg_write(4, IONIC_INTR_CREDITS, UNMASK);
	assert_int_equal(guest.msix[4], 1);
	assert_int_equal(credits(4), 0);
	post(4, 1);
	assert_int_equal(guest.msix[4], 2);
	post(4, 3); /* after the interrupt, perhaps unseen */
	reg_write(4, IONIC_INTR_CREDITS, UNMASK);
	assert_int_equal(guest.msix[4], 3);
}

/* A driver that leaves mask_assert alone gets an interrupt for each completion. */
static void test_without_mask_assert(void **state)
{
	(void)state;
	reg_write(5, IONIC_INTR_MASK, 0);
	post(5, 4);
	assert_int_equal(guest.msix[5], 4);
}

static void test_count_does_not_wrap(void **state)
{
	(void)state;
	ionic_intr_post(guest.dev, 6, 0xffffffff);
	ionic_intr_post(guest.dev, 6, 0xffffffff);
	post(6, 100);
	assert_int_equal(credits(6), 0x7fff);
	reg_write(6, IONIC_INTR_CREDITS, credits(6));
	assert_int_equal(credits(6), 0);
}

static void test_vector_out_of_range(void **state)
{
	(void)state;
	ionic_intr_post(guest.dev, fake_profile.intr_vectors, 1);
	ionic_intr_post(guest.dev, UINT32_MAX, 1);
	for (unsigned i = 0; i < IONIC_INTRS_MAX; i++)
		assert_int_equal(guest.msix[i], 0);
}

static void test_reset_masks(void **state)
{
	(void)state;
	reg_write(0, IONIC_INTR_MASK, 0);
	post(0, 1);
	reg_write(1, IONIC_INTR_COAL_INIT, 9);
	fake_reset(&guest, VFIO_RESET_FUNCTION);
	for (unsigned i = 0; i < fake_profile.intr_vectors; i++) {
		assert_int_equal(fake_read(&guest, 0x2000 + 32 * i + 4, 4), 1);
		assert_int_equal(fake_read(&guest, 0x2000 + 32 * i, 4), 0);
		assert_int_equal(credits(i), 0);
	}
}

/* ---- drivers at random ---- */

#define RUNS  3000
#define STEPS 200

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

/* A driver on vector 0, with unseen completions of two kinds. */
struct driver {
	unsigned tx, rx; /* unseen */
	uint64_t msix;   /* interrupts seen */
	bool scheduled;  /* will poll */
	uint64_t posts, polls;
	bool rdma;
};

#define TX_BUDGET 6
#define RX_BUDGET 3

static void device_posts(struct driver *driver, unsigned chance)
{
	while (draw(100) < chance) {
		if (!driver->rdma && draw(2))
			driver->tx++;
		else
			driver->rx++;
		driver->posts++;
		ionic_intr_post(guest.dev, 0, 1);
	}
}

static void see_interrupt(struct driver *driver)
{
	if (guest.msix[0] != driver->msix)
		driver->scheduled = true;
	driver->msix = guest.msix[0];
}

static unsigned take(unsigned *unseen, unsigned budget)
{
	unsigned count = *unseen < budget ? *unseen : budget;

	*unseen -= count;
	return count;
}

/* The event queue of the RDMA driver: a drained poll returns nothing, ever. */
static void rdma_poll(struct driver *driver, unsigned chance)
{
	unsigned work = take(&driver->rx, RX_BUDGET);
	bool drained = work < RX_BUDGET;

	if (drained)
		driver->scheduled = false;
	device_posts(driver, chance);
	reg_write(0, IONIC_INTR_CREDITS, drained ? UNMASK : work);
}

static void ethernet_poll(struct driver *driver, unsigned chance)
{
	unsigned tx = take(&driver->tx, TX_BUDGET), rx = take(&driver->rx, RX_BUDGET);
	bool completes = rx < RX_BUDGET && (chance == 0 || draw(4) > 0);

	device_posts(driver, chance);
	if (rx == 0 && !completes)
		return; /* scheduled again, and the transmit work is never returned */
	if (completes)
		driver->scheduled = false;
	reg_write(0, IONIC_INTR_CREDITS, (tx + rx) | RESET_COAL | (completes ? UNMASK : 0));
}

static void poll(struct driver *driver, unsigned chance)
{
	driver->polls++;
	if (driver->rdma)
		rdma_poll(driver, chance);
	else
		ethernet_poll(driver, chance);
	see_interrupt(driver);
}

static void run_at_random(bool rdma, uint32_t seed)
{
	struct driver driver = {.rdma = rdma};
	unsigned extra = 0;

	random_state = seed;
	fake_reset(&guest, VFIO_RESET_FUNCTION);
	driver.msix = guest.msix[0];
	reg_write(0, IONIC_INTR_MASK_ASSERT, 1);
	reg_write(0, IONIC_INTR_MASK, 0);
	for (unsigned step = 0; step < STEPS; step++) {
		device_posts(&driver, 40);
		see_interrupt(&driver);
		if (driver.scheduled && draw(2))
			poll(&driver, 30);
	}
	/* The device is silent from here on. All is seen soon, and then the driver has peace. */
	while (driver.scheduled && extra++ < driver.posts + 4)
		poll(&driver, 0);
	assert_false(driver.scheduled);
	assert_int_equal(driver.tx + driver.rx, 0);
	assert_true(guest.dev->intr[0].sent <= guest.msix[0]);
}

static void test_ethernet_driver_at_random(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= RUNS; seed++)
		run_at_random(false, seed);
}

static void test_rdma_driver_at_random(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= RUNS; seed++)
		run_at_random(true, seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_masked_collects, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_left_over_credits_fire_again, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_return_without_unmask, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_clean_sequence, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_return_of_too_much, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_zero_return, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_without_mask_assert, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_count_does_not_wrap, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_vector_out_of_range, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reset_masks, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_ethernet_driver_at_random, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_rdma_driver_at_random, setup, teardown),
	};

	return cmocka_run_group_tests_name("ionic/intr", tests, NULL, NULL);
}
