/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admin commands for memory regions, windows and address handles (spec ionic-rdma 3.4, 8). */
#include "rdma_lif.h"

#include <errno.h>

COUNTER(ionic_mr_too_many_pages, "CREATE_MR with a page table larger than drivers can allocate");

enum ionic_rdma_admin_status ionic_admin_create_mr(struct ionic_rdma *rdma,
                                                   const union ionic_rdma_admin *wqe)
{
	struct rdma_mr_config config = {
	        .key = le32_get(wqe->create_mr.id_ver),
	        .pd = le32_get(wqe->create_mr.pd_id),
	        .va = le64_get(wqe->create_mr.va),
	        .length = le64_get(wqe->create_mr.length),
	        .dma_addr = le64_get(wqe->create_mr.pages.dma_addr),
	        .page_count = le32_get(wqe->create_mr.pages.map_count),
	        .page_shift = wqe->create_mr.page_size_log2,
	        .flags = le16_get(wqe->create_mr.flags),
	};
	int rc;

	if (config.page_count > IONIC_RDMA_MR_PAGES) {
		counter_inc(&ionic_mr_too_many_pages);
		return IONIC_RDMA_MSG_TOO_BIG;
	}
	if (config.page_count > 1) {
		if (config.page_shift > IONIC_RDMA_PAGE_BITS)
			return IONIC_RDMA_BAD_ATTR;
		config.first = config.va & ((UINT64_C(1) << config.page_shift) - 1);
	}
	rc = rdma_mr_begin(rdma->engine, &config);
	if (rc == 1)
		rc = rdma_mr_load(rdma->engine, config.key, IONIC_RDMA_PAGES_A_TURN);
	return rc == 1 ? IONIC_RDMA_IN_PROGRESS : ionic_admin_status(rc);
}

enum ionic_rdma_admin_status ionic_admin_destroy_mr(struct ionic_rdma *rdma,
                                                    const union ionic_rdma_admin *wqe)
{
	return ionic_admin_status(rdma_mr_destroy(rdma->engine, le32_get(wqe->destroy.id)));
}

enum ionic_rdma_admin_status ionic_admin_create_ah(struct ionic_rdma *rdma,
                                                   const union ionic_rdma_admin *wqe)
{
	uint32_t id = le32_get(wqe->create_ah.id_ver) & IONIC_RDMA_ID_MASK;
	uint32_t size = le32_get(wqe->create_ah.length);
	uint8_t header[RDMA_TEMPLATE_MAX];
	int rc = ionic_rdma_read_template(rdma, le64_get(wqe->create_ah.dma_addr), size, header);

	if (rc == 0)
		rc = rdma_ah_create(rdma->engine, id, le32_get(wqe->create_ah.pd_id), header, size);
	return ionic_admin_status(rc);
}

enum ionic_rdma_admin_status ionic_admin_destroy_ah(struct ionic_rdma *rdma,
                                                    const union ionic_rdma_admin *wqe)
{
	uint32_t id = le32_get(wqe->destroy.id) & IONIC_RDMA_ID_MASK;

	return ionic_admin_status(rdma_ah_destroy(rdma->engine, id));
}
