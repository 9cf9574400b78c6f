import { join } from "node:path";
import { createBusHub, memoryBus } from "@portico/adapters/bus/memory";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { recordDocuments } from "@portico/adapters/documents/records";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { Adapter, ports } from "@portico/core";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { documentsConformance } from "./documents.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());
const database = await postgresDatabase();
afterAll(() => database?.drop());

let stores = 0;
const sqlite = () => sqliteRecords({ path: join(folder.path, `${++stores}.sqlite`) });
const postgres = () => postgresRecords({ url: database?.url ?? "", schema: `documents_${++stores}`, poolSize: 2 });

/** The documents of an instance, and another process that changes them. */
function shared(makeRecords: () => Adapter<typeof ports.records>, onOpen: (others: readonly Adapter[]) => void) {
  const adapter = recordDocuments({ id: "agents" });
  const hub = createBusHub();
  const records = makeRecords();
  const others = () => [records, memoryBus({ hub }), memoryTelemetry({}), systemClock()];
  onOpen(others());
  const inOther = async <T>(port: Adapter, work: (opened: any) => Promise<T>): Promise<T> => {
    const other = await openAdapter(port, others());
    try {
      return await work(other.port);
    } finally {
      await other.close();
    }
  };
  return {
    adapter,
    edit: (name: string, text: string | undefined) =>
      inOther(recordDocuments({ id: "agents" }), async (documents: ports.Documents) => {
        const version = (await documents.read(name))?.version ?? "absent";
        await (text === undefined ? documents.remove(name, version) : documents.write(name, text, version));
      }),
    spoil: (name: string, bytes: Uint8Array) =>
      inOther(records, (port: ports.Records) =>
        port.collection({ name: "instance-document-texts" }).put(`agents/${name}`, { text: [...bytes] }),
      ),
  };
}

function conformance(name: string, makeRecords: () => Adapter<typeof ports.records>): void {
  let others: readonly Adapter[] = [];
  documentsConformance(name, () => shared(makeRecords, (made) => (others = made)), { others: () => others });
}

conformance("records, on SQLite", sqlite);
describe.skipIf(!database)("on a server", () => conformance("records, on PostgreSQL", postgres));

describe("documents/records", () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  const open = async (options: Parameters<typeof recordDocuments>[0], others: readonly Adapter[]) => {
    const opened: OpenAdapter<ports.Documents> = await openAdapter(recordDocuments(options), others);
    closing.push(opened.close);
    return opened.port;
  };

  it("keeps the documents of each source apart, in the same records", async () => {
    const others = [sqlite(), systemClock()];
    const agents = await open({ id: "agents" }, others);
    const workflows = await open({ id: "workflows" }, others);
    await agents.write("x.json", "of agents", "absent");
    await workflows.write("x.json", "of workflows", "absent");
    await workflows.write("agents/y.json", "too", "absent");
    expect([await agents.list(), await workflows.list()]).toEqual([["x.json"], ["agents/y.json", "x.json"]]);
    expect((await agents.read("x.json"))?.text).toBe("of agents");
  });

  it("lists more documents than a page of records has", async () => {
    const documents = await open({ id: "agents" }, [memoryRecords(), systemClock()]);
    const names = Array.from({ length: 1001 }, (_, at) => `a${`${at}`.padStart(4, "0")}`);
    await Promise.all(names.map((name) => documents.write(name, "", "absent")));
    expect(await documents.list()).toEqual(names);
  });

  it("lets one of several processes through that have read the same", async () => {
    const others = [sqlite(), systemClock()];
    const processes = await Promise.all(Array.from({ length: 4 }, () => open({ id: "agents" }, others)));
    let { version } = await processes[0]!.write("x", "0", "absent");
    for (let round = 1; round <= 20; round++) {
      const outcomes = await Promise.allSettled(processes.map((each, at) => each.write("x", `${round} by ${at}`, version)));
      const written = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? outcome.value : []));
      expect(written).toHaveLength(1);
      version = written[0]!.version;
      for (const each of processes) expect(await each.read("x")).toEqual(written[0]);
    }
  });

  it("is told of a change by the bus, long before the next check", async () => {
    const clock = createManualClock();
    const [records, hub] = [sqlite(), createBusHub()];
    const bus = memoryBus({ hub });
    const documents = await open({ id: "agents" }, [records, bus, memoryTelemetry({}), manualClock({ clock })]);
    const names: string[] = [];
    await documents.watch((name) => names.push(name));
    const other = await open({ id: "agents" }, [records, bus, memoryTelemetry({}), systemClock()]);
    // The first look, when the subscription is active, is not what finds it.
    await clock.advance(100);
    await other.write("a/agent.json", "1", "absent");
    await clock.advance(100);
    await expect.poll(() => names).toEqual(["a/agent.json"]);
  });

  it("finds a change that the bus did not tell, at the next check", async () => {
    const clock = createManualClock();
    const records = sqlite();
    const documents = await open({ id: "agents" }, [records, memoryBus({}), memoryTelemetry({}), manualClock({ clock })]);
    const names: string[] = [];
    await documents.watch((name) => names.push(name));
    // Its bus has another hub: this process hears nothing of it.
    const other = await open({ id: "agents" }, [records, memoryBus({}), memoryTelemetry({}), systemClock()]);
    await other.write("a/agent.json", "1", "absent");
    expect(names).toEqual([]);
    await expect
      .poll(async () => {
        await clock.advance(5000);
        return names;
      })
      .toEqual(["a/agent.json"]);
  });

  it.each(["", "Agents", "a/b", "x".repeat(65)])("throws TypeError for the id %j", async (id) => {
    await expect(open({ id }, [memoryRecords(), systemClock()])).rejects.toThrow(TypeError);
  });
});
