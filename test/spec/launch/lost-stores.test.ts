import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const folder = temporaryFolder();
let token: string;
afterAll(() => folder.remove());

const start = () => startPortico({ cwd: folder.path, args: ["agent"], hasOwnProcess: true });
const kill = async (service: PorticoProcess): Promise<void> => {
  service.signal("SIGKILL");
  await service.exited;
};
const ask = async (service: PorticoProcess): Promise<string> => {
  await using client = connectAgent({ baseURL: service.url("agent"), token });
  const query = client.submit({ agentId: "helper", prompt: "Hello" });
  expect((await query.ended).status).toBe("completed");
  return query.clientRequestId;
};
const statusesOf = async (service: PorticoProcess, ids: readonly string[]): Promise<readonly string[]> => {
  const answer = await fetch(`${service.url("agent")}/api/query/client-requests/lookup`, {
    method: "POST",
    headers: { "x-agent-service-token": token, "content-type": "application/json" },
    body: JSON.stringify({ agentId: "helper", requests: ids.map((clientRequestId) => ({ clientRequestId })) }),
  });
  return ((await answer.json()) as { results: { status: string }[] }).results.map(({ status }) => status);
};
const doctor = async (): Promise<readonly { readonly about: string; readonly message: string; readonly isWrong: boolean }[]> =>
  JSON.parse((await runCommand(["doctor", "--json"], { cwd: folder.path })).stdout).filter(
    ({ about }: { about: string }) => about === "records store",
  );

describe("a service whose store lost what was acknowledged, after a kill", () => {
  let kept: string;
  let lost: string;
  beforeAll(async () => {
    mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
    writeFileSync(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
    await using first = await start();
    token = JSON.parse(first.read("credentials.json")).agentServiceToken;
    kept = await ask(first);
    expect(await first.stop()).toBe(0);
    await using second = await start();
    lost = await ask(second);
    await kill(second);
  });

  it("is whole to doctor while its files are there", async () => {
    expect(await doctor()).toEqual([{ about: "records store", message: "it is intact", isWrong: false }]);
  });

  it("is reported by doctor and at the start; lookups answer unknown for lost records, and committed for the others", async () => {
    rmSync(join(folder.path, ".portico/records.sqlite-wal"));
    expect(await doctor()).toMatchObject([{ isWrong: true, message: expect.stringContaining("the last writes are missing") }]);
    await using service = await start();
    const warnings = service
      .stderr()
      .split("\n")
      .filter((line) => line.includes("The records store has lost"));
    expect(warnings).toHaveLength(1);
    expect(JSON.parse(warnings[0]!)).toMatchObject({ level: "warn" });
    expect(await statusesOf(service, [kept, lost, randomUUID()])).toEqual(["committed", "unknown", "unknown"]);
    expect(await ask(service)).toBeDefined();
    await kill(service);
    expect((await doctor())[0]?.isWrong).toBe(false);
  });

  it("is told of once, and what it does not know stays unknown after another start", async () => {
    await using service = await start();
    expect(service.stderr()).not.toContain("has lost");
    expect(await statusesOf(service, [kept, lost])).toEqual(["committed", "unknown"]);
    expect(await service.stop()).toBe(0);
  });

  it("is wrong to doctor when its file is damaged, or gone", async () => {
    const path = join(folder.path, ".portico/records.sqlite");
    writeFileSync(path, "x".repeat(8192));
    expect(await doctor()).toMatchObject([{ isWrong: true, message: expect.stringContaining("cannot be read") }]);
    rmSync(path);
    expect(await doctor()).toMatchObject([{ isWrong: true, message: `${path} existed before and is missing` }]);
  });
});
