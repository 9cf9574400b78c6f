import { createParser } from "eventsource-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";

const PATIENT = { timeout: 60_000, interval: 100 };
const headers = { "x-agent-service-token": CLUSTER_OWNER };
const place = await clusterPlace();
if (!place) console.warn("Tests of clusters are skipped: no PostgreSQL or no Redis server answers");

describe.skipIf(!place)("what one process of a cluster shows of all", () => {
  let cluster: RunningCluster;
  beforeAll(async () => void (cluster = await startCluster(place!, { count: 2 })));
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const call = (at: number, path: string, signal?: AbortSignal) =>
    fetch(cluster.processes[at]!.url("agent") + path, { headers, ...(signal && { signal }) });

  it("log lines of every process, with its name", async () => {
    const leaving = new AbortController();
    const lines: { readonly msg: string; readonly process: string; readonly request?: string }[] = [];
    const answer = await call(0, "/api/log?processes=all&kind=request&last=0", leaving.signal);
    const parser = createParser({ onEvent: ({ event, data }) => event === "log:line" && lines.push(JSON.parse(data)) });
    const text = answer.body!.pipeThrough(new TextDecoderStream());
    const read = (async () => {
      for await (const piece of text) parser.feed(piece);
    })().catch(() => {});
    // The other process hears only after a moment that this one follows it.
    const names = async () => {
      for (const at of [0, 1]) await call(at, "/api/nothing");
      return new Set(lines.map(({ process }) => process)).size;
    };
    await expect.poll(names, PATIENT).toBe(2);
    const asked = await call(1, "/api/nothing");
    const id = asked.headers.get("x-portico-request-id");
    const lineOf = () => lines.find(({ request }) => request === id);
    await expect.poll(lineOf, PATIENT).toBeDefined();
    expect(lineOf()!.process).toMatch(/^.+\/\d+$/);
    leaving.abort();
    await read;
  });

  it("ended work of every process", async () => {
    for (let request = 0; request < 5; request++) await call(1, "/api/handshake");
    const areasOf = async (at: number) => {
      const { series } = (await (await call(at, "/api/measurements/work?kind=request&step=day")).json()) as {
        series: { value: string; completed: number[] }[];
      };
      return series.find(({ value }) => value === "conversations-runs")?.completed.reduce((sum, each) => sum + each, 0);
    };
    // Only the second process answered them.
    await expect.poll(() => areasOf(0), PATIENT).toBeGreaterThanOrEqual(5);
  });
});
