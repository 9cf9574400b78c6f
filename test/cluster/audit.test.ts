import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ports } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ClusterPlace, clusterPlace } from "../harness/cluster.ts";
import { type PorticoProcess, startPortico } from "../harness/portico-process.ts";

const PATIENT = { timeout: 60_000, interval: 100 };
const tokens = [{ token: { file: "owner" }, userId: "ada", role: "owner" }];
const place = await clusterPlace({
  PORTICO_AGENT_TOKENS: JSON.stringify(tokens),
  PORTICO_ROTATION_WATCH_MS: "0",
  PORTICO_ROTATION_OVERLAP_MS: "3600000",
});
if (!place) console.warn("Tests of clusters are skipped: no PostgreSQL or no Redis server answers");

describe.skipIf(!place)("the audit and the rotation of a cluster", () => {
  let processes: readonly PorticoProcess[];
  const write = (value: string) => writeFileSync(join(place!.folder, "owner"), value, { mode: 0o600 });
  beforeAll(async () => {
    write("owner-1");
    expect((await place!.run("migrate")).code).toBe(0);
    const { folder: cwd, env } = place as ClusterPlace;
    const start = () => startPortico({ cwd, env, args: ["cluster"], hasOwnProcess: true });
    processes = [await start(), await start()];
  });
  afterAll(async () => {
    for (const each of processes ?? []) await each[Symbol.asyncDispose]();
    await place!.remove();
  });

  const call = (at: number, path: string, token = "owner-1", method = "GET", body?: object) =>
    fetch(processes[at]!.url("agent") + path, {
      method,
      headers: { "x-agent-service-token": token, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  const entries = async (at: number, action: string): Promise<ports.AuditEntry[]> =>
    (await (await call(at, `/api/audit?action=${action}`)).json()).items;
  const hangUp = async (at: number) => {
    processes[at]!.signal("SIGHUP");
    await expect.poll(() => processes[at]!.stderr(), PATIENT).toContain("Secrets were read again");
  };

  it("every process tells what another process, and a command, changed", async () => {
    const { tokenId } = await (await call(0, "/api/safe-tokens", "owner-1", "POST", { providerId: "demo" })).json();
    expect(await entries(1, "safe-token.issue")).toMatchObject([{ object: tokenId, who: { role: "owner", userId: "ada" } }]);
    const documents = join(place!.folder, "documents");
    mkdirSync(join(documents, "agents/helper"), { recursive: true });
    writeFileSync(join(documents, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
    expect((await place!.run("documents", "push", documents)).code).toBe(0);
    expect(await entries(1, "document.write")).toMatchObject([{ object: "agents/helper/agent.json", who: { role: "command" } }]);
    expect((await entries(1, "documents.push")).length).toBe(4);
    const { stdout } = await place!.run("audit", "--json", "--action", "safe-token.issue");
    expect(JSON.parse(stdout)).toMatchObject({ object: tokenId });
  });

  it("a process that has a new owner's token, and one that has not, accept what the other signs", async () => {
    const works = async (issuedBy: number, token: string, usedAt: number) => {
      const issued = await (await call(issuedBy, "/api/service-tokens", token, "POST")).json();
      const headers = { "x-workflow-service-token": issued.token };
      return (await fetch(`${processes[usedAt]!.url("workflow")}/api/workflows`, { headers })).status;
    };
    write("owner-2");
    await hangUp(0);
    expect([(await call(0, "/api/agents", "owner-2")).status, (await call(1, "/api/agents", "owner-2")).status]).toEqual([
      200, 401,
    ]);
    expect([await works(0, "owner-2", 1), await works(1, "owner-1", 0)]).toEqual([200, 200]);
    await hangUp(1);
    expect([await works(0, "owner-2", 1), await works(1, "owner-2", 0), await works(1, "owner-1", 0)]).toEqual([200, 200, 200]);
    const rotations = await entries(0, "secrets.rotate");
    expect(rotations.map(({ outcome }) => outcome).toSorted()).toEqual(["begun", "begun", "done", "done"]);
  });
});
