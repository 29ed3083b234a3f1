// Summary views by the archived npm client: a part of tests/compat/archived_clients/npm_program.mjs.

import assert from "node:assert/strict";

export const scenarios = ({ open, three, until }) => ({
  async views() {
    const client = open("views");
    const { namespace } = await three(client);
    const filters = { namespace: namespace.eq };
    const view = await client.createSummaryView({ name: "per user", source: "long_term", group_by: ["user_id"], filters, continuous: false });
    assert.deepEqual([view.name, view.source, view.group_by, view.filters], ["per user", "long_term", ["user_id"], filters]);
    assert.deepEqual(await client.getSummaryView(view.id), view);
    assert.ok((await client.listSummaryViews()).some(({ id }) => id === view.id));
    const partition = await client.runSummaryViewPartition(view.id, { user_id: "ada" });
    assert.deepEqual([partition.group, partition.memory_count], [{ user_id: "ada" }, 2]);
    assert.equal((await client.listSummaryViewPartitions(view.id, { userId: "ada" })).length, 1);
    assert.deepEqual(await client.listSummaryViewPartitions(view.id, { userId: "bob", memoryType: "semantic" }), []);
    const task = await client.runSummaryView(view.id, { force: true });
    const ended = async () => {
      const found = await client.getTask(task.id);
      return !["pending", "running"].includes(found.status) && found;
    };
    assert.equal((await until(ended, "the view's run")).status, "success");
    assert.equal((await client.listSummaryViewPartitions(view.id)).length, 2);
    assert.deepEqual(await client.deleteSummaryView(view.id), { status: "ok" });
    assert.equal(await client.getSummaryView(view.id), null);
    assert.equal(await client.getTask("none"), null);
  },
});
