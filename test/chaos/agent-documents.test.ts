import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type PorticoProcess, startPortico, temporaryFolder } from "../harness/portico-process.ts";

const ROUNDS = process.env.PORTICO_LONG ? 100 : 10;
const TOKEN = "owner-token-0123456789";
const before = `{ "name": "Before" }`;
const hook = join(import.meta.dirname, "processes/at-rename.ts");

let folder: ReturnType<typeof temporaryFolder>;
let services: PorticoProcess[];
beforeEach(() => {
  folder = temporaryFolder();
  services = [];
  mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
  writeFileSync(join(folder.path, "agents/helper/agent.json"), before);
});
afterEach(async () => {
  for (const service of services) await service[Symbol.asyncDispose]();
  folder.remove();
});

/** An instance of its own, whose agents are in the folder that all instances share. */
async function start(name: string, atRename?: "kill" | "wait"): Promise<PorticoProcess> {
  const cwd = join(folder.path, name);
  mkdirSync(cwd, { recursive: true });
  const service = await startPortico({
    cwd,
    config: {
      agent: { agentsDir: join(folder.path, "agents"), tokens: [{ token: TOKEN, userId: "ada", role: "owner" }] },
    },
    hasOwnProcess: true,
    ...(atRename && { env: { NODE_OPTIONS: `--import ${hook}`, PORTICO_TEST_AT_RENAME: atRename } }),
  });
  services.push(service);
  return service;
}

const call = (service: PorticoProcess, headers: Record<string, string> = {}, text?: string) =>
  fetch(`${service.url("agent")}/api/agents/helper/document`, {
    method: text === undefined ? "GET" : "PUT",
    headers: { "x-agent-service-token": TOKEN, "content-type": "application/json", ...headers },
    ...(text !== undefined && { body: JSON.stringify({ text }) }),
  });
const tag = async (service: PorticoProcess) => (await call(service)).headers.get("etag")!;
const files = () => readdirSync(join(folder.path, "agents/helper"));
const file = () => readFileSync(join(folder.path, "agents/helper/agent.json"), "utf8");

it(`of texts that two processes write for the same version at once, one is written, ${ROUNDS} times`, async () => {
  const [one, other] = [await start("one", "wait"), await start("other", "wait")];
  for (let round = 0; round < ROUNDS; round++) {
    const etag = await tag(one);
    const texts = [one, other].map((_, at) => `{ "name": "Round ${round} of ${at}" }`);
    const answers = await Promise.all([one, other].map((service, at) => call(service, { "if-match": etag }, texts[at])));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 412]);
    expect(file()).toBe(texts[statuses.indexOf(200)]);
  }
  expect(files()).toEqual(["agent.json"]);
});

it("a process that is killed between its temporary file and the rename leaves the whole former text, which can be replaced", async () => {
  const dying = await start("one", "kill");
  const etag = await tag(dying);
  await expect(call(dying, { "if-match": etag }, `{ "name": "After" }`)).rejects.toThrow();
  expect(await dying.exited).toMatchObject({ signal: "SIGKILL" });
  expect(file()).toBe(before);
  // The killed process held the file for itself, which ends with time.
  for (const name of files()) utimesSync(join(folder.path, "agents/helper", name), 0, 0);

  const next = await start("one");
  expect(await (await call(next)).text()).toBe(before);
  expect((await call(next, { "if-match": await tag(next) }, `{ "name": "After" }`)).status).toBe(200);
  expect(file()).toBe(`{ "name": "After" }`);
  expect(files()).toEqual(["agent.json"]);
});
