import { join } from "node:path";
import { inspect } from "node:util";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { type Adapter, defineAdapter, ports, Secret } from "@portico/core";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";
import { secretsConformance } from "./secrets.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());
const database = await postgresDatabase();
afterAll(() => database?.drop());

const keyOf = (byte: number) => new Secret(Buffer.alloc(32, byte).toString("base64url"));
let stores = 0;
const sqlite = () => sqliteRecords({ path: join(folder.path, `${++stores}.sqlite`) });
const postgres = () => postgresRecords({ url: database?.url ?? "", schema: `secrets_${++stores}`, poolSize: 2 });

secretsConformance("records, on SQLite", () => recordSecrets({ key: keyOf(1) }), { others: () => [sqlite()], shared: true });
describe.skipIf(!database)("on a server", () =>
  secretsConformance("records, on PostgreSQL", () => recordSecrets({ key: keyOf(1) }), {
    others: () => [postgres()],
    shared: true,
  }),
);

describe("secrets/records", () => {
  /** One store that several openings share, as processes do. */
  const sharedRecords = async () => {
    const store = sqlite();
    const opened = await openAdapter(store);
    return { store, kept: opened.port.collection<{ sealed: string }>({ name: "instance-secrets" }), close: opened.close };
  };
  const open = async (store: Adapter, key: Secret): Promise<OpenAdapter<ports.Secrets>> =>
    openAdapter(recordSecrets({ key }), [store]);
  const refusalOf = (promise: Promise<unknown>): Promise<Error> =>
    promise.then(
      () => expect.fail("It was not refused"),
      (error: Error) => error,
    );

  it("stores nothing of a secret in plain form, and another text each time", async () => {
    await using disposing = new AsyncDisposableStack();
    const { store, kept, close } = await sharedRecords();
    disposing.defer(close);
    const { port, close: closeSecrets } = await open(store, keyOf(1));
    disposing.defer(closeSecrets);
    await port.replace("agent", new Secret("a-secret-of-the-test"));
    const first = (await kept.get("agent"))!.value.sealed;
    expect(Buffer.from(first.split(".")[2]!, "base64url").toString("latin1")).not.toContain("a-secret");
    await port.replace("agent", new Secret("a-secret-of-the-test"));
    expect((await kept.get("agent"))!.value.sealed).not.toBe(first);
  });

  it("opens secrets of its other keys, seals all of them again with its own key, and needs the others no more", async () => {
    await using disposing = new AsyncDisposableStack();
    const { store, kept, close } = await sharedRecords();
    disposing.defer(close);
    const openWith = async (key: Secret, ...otherKeys: readonly Secret[]) => {
      const { port, close: closeSecrets } = await openAdapter(recordSecrets({ key, otherKeys }), [store]);
      disposing.defer(closeSecrets);
      return port;
    };
    const earlier = await openWith(keyOf(1), keyOf(2));
    await earlier.replace("agent", new Secret("a-secret-of-the-test"));
    const before = (await kept.get("agent"))!;

    const later = await openWith(keyOf(2), keyOf(1));
    expect((await kept.get("agent"))!.version).not.toBe(before.version);
    for (const secrets of [earlier, later]) expect((await secrets.find("agent"))!.reveal()).toBe("a-secret-of-the-test");
    // A process that was not restarted yet seals with the earlier key.
    await earlier.replace("late", new Secret("another-secret"));
    expect((await later.find("late"))!.reveal()).toBe("another-secret");
    await openWith(keyOf(2), keyOf(1));

    const alone = await openWith(keyOf(2));
    for (const [name, text] of [
      ["agent", "a-secret-of-the-test"],
      ["late", "another-secret"],
    ] as const)
      expect((await alone.find(name))!.reveal()).toBe(text);
    await expect(openWith(keyOf(1))).rejects.toThrow("another instance key");
  });

  it("keeps a text that UTF-8 cannot hold", async () => {
    const { port, close } = await open(memoryRecords(), keyOf(1));
    await port.replace("odd", new Secret("a\ud800"));
    expect((await port.find("odd"))?.reveal()).toBe("a\ud800");
    await close();
  });

  it("does not open with another key, changes nothing, and opens again with the first one", async () => {
    await using disposing = new AsyncDisposableStack();
    const { store, kept, close } = await sharedRecords();
    disposing.defer(close);
    const first = await open(store, keyOf(1));
    await first.port.keep("agent", () => new Secret("kept"));
    await first.close();
    const before = (await kept.query()).items;
    const error = await refusalOf(open(store, keyOf(2)));
    expect(error).toBeInstanceOf(ports.SecretsUnavailable);
    expect(error.message).toContain("sealed under another instance key: start every process with the key of the first start");
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(keyOf(2).reveal());
    expect((await kept.query()).items).toEqual(before);
    const again = await open(store, keyOf(1));
    disposing.defer(again.close);
    expect((await again.port.find("agent"))?.reveal()).toBe("kept");
  });

  it("lets one of two keys win where two processes start for the first time at once", async () => {
    const { store, close } = await sharedRecords();
    const outcomes = await Promise.allSettled([1, 2, 1, 2].map((byte) => open(store, keyOf(byte))));
    const won = outcomes.flatMap(({ status }, at) => (status === "fulfilled" ? at % 2 : []));
    expect(won).toHaveLength(2);
    expect(new Set(won).size).toBe(1);
    for (const outcome of outcomes) if (outcome.status === "fulfilled") await outcome.value.close();
    await close();
  });

  it("does not answer a secret that was stored under another name, or was changed", async () => {
    await using disposing = new AsyncDisposableStack();
    const { store, kept, close } = await sharedRecords();
    disposing.defer(close);
    const { port, close: closeSecrets } = await open(store, keyOf(1));
    disposing.defer(closeSecrets);
    await port.replace("member", new Secret("of a member"));
    const { sealed } = (await kept.get("member"))!.value;
    for (const wrong of [sealed, `${sealed.slice(0, -4)}AAAA`, "v1.short", ""]) {
      await kept.put("owner", { sealed: wrong });
      for (const call of [() => port.find("owner"), () => port.keep("owner", () => new Secret("new"))]) {
        const error = await refusalOf(call());
        expect(error).toBeInstanceOf(ports.SecretsUnavailable);
        expect(error.message).toBe("The stored secret owner is damaged");
        expect(error.cause).toBeInstanceOf(ports.SealBroken);
      }
    }
  });

  it("says that it is unavailable where its records are", async () => {
    const { port, close } = await open(sqlite(), keyOf(1));
    await close();
    for (const call of [port.find("a"), port.keep("a", () => new Secret("b")), port.replace("a", new Secret("b"))]) {
      expect(await refusalOf(call)).toMatchObject({ name: "SecretsUnavailable", cause: { name: "RecordsUnavailable" } });
    }
  });

  it("reports a write that fails, and does not take it for a secret that another process kept first", async () => {
    let failure: Error | undefined;
    const { port: records } = await openAdapter(memoryRecords());
    const failing = defineAdapter({
      ...{ name: "records/failing", port: ports.records, needs: {} },
      open: (): ports.Records => ({
        batch: (writes) => records.batch(writes),
        collection: <T extends object>(spec: ports.CollectionSpec): ports.Collection<T> => {
          const whole = records.collection<T>(spec);
          return { ...whole, put: (...args) => (failure ? Promise.reject(failure) : whole.put(...args)) };
        },
      }),
    });
    const { port } = await open(failing(), keyOf(1));
    failure = new ports.RecordsUnavailable("away");
    expect(await refusalOf(port.keep("a", () => new Secret("b")))).toMatchObject({ name: "SecretsUnavailable", cause: failure });
    failure = new TypeError("a defect");
    expect(await refusalOf(port.keep("a", () => new Secret("b")))).toBe(failure);
    failure = undefined;
    expect((await port.keep("a", () => new Secret("b"))).created).toBe(true);
  });

  it.each(["", "short", `${keyOf(1).reveal()}A`])("throws TypeError for the key %j", async (key) => {
    expect(await refusalOf(open(memoryRecords(), new Secret(key)))).toBeInstanceOf(TypeError);
  });
});
