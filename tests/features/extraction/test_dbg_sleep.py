from tests.features.extraction.test_late_contradictions import *
from agent_memory.memories.upkeep.idle import IdleTenants
from agent_memory.memories.upkeep.scan import *
from agent_memory.core.work import DueKind
from agent_memory_worker.extraction import contradictions as c
async def test_dbg(make_rig, chat, ends):
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN,0), said(OSLO,9))
        for k in DueKind: print(k, await rig.marks(k))
        print(await rig.rt[MemoryScan].memory_tenants(), await rig.rt[IdleTenants].idle_tenants(["default"], 0))
        ch, until = await rig.rt[MemoryScan].load_changed(SCOPE, Selection(), 0, 32)
        print(len(ch), until)
        print(await c._pairs(rig.rt, SCOPE, ch))
        print(await look(rig), ends.calls)
        assert 0
