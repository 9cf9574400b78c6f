import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "@portico/adapters/clock/system";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { builtinDrivers } from "unstorage";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DOCUMENT_DRIVERS } from "../../../presets/src/settings/documents.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const GREET = `name: Greet
nodes:
  greet: { type: transform, with: { value: "Hello" } }
outputs: { greeting: "\${{ nodes.greet.output }}" }
`;

describe("agents and workflow definitions in a database", () => {
  const folder = temporaryFolder();
  const path = join(folder.path, "documents.sqlite");
  const at = (tableName: string) => ({ driver: "db0", options: { path: { env: "DOCUMENTS_PATH" }, tableName } });
  const config = { agent: { documents: at("agents") }, workflow: { documents: at("workflows") } };
  const env = { DOCUMENTS_PATH: path };
  let service: PorticoProcess;
  /** As another program writes them. */
  const write = async (tableName: string, name: string, text: string) => {
    const options = { path, tableName };
    const { port, close } = await openAdapter(unstorageDocuments({ id: "x", driver: "db0", options }), [systemClock()]);
    await port.write(name, text, (await port.read(name))?.version ?? "absent");
    await close();
  };
  beforeAll(async () => {
    await write("agents", "helper/agent.json", JSON.stringify({ name: "Helper" }));
    await write("workflows", "greet.yaml", GREET);
    service = await startPortico({ cwd: folder.path, config, env });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    folder.remove();
  });
  const token = (name: string) => (JSON.parse(service.read("credentials.json")) as Record<string, string>)[name]!;

  it("are served, and no folder is looked at or made", async () => {
    const headers = { "x-agent-service-token": token("agentServiceToken") };
    const { agents } = (await (await fetch(`${service.url("agent")}/api/agents`, { headers })).json()) as any;
    expect(agents).toMatchObject([{ id: "helper", name: "Helper" }]);
    const { stdout } = await service.run("workflow", "start", "greet", "--follow");
    expect(stdout).toContain("Hello");
    expect(readdirSync(folder.path).sort()).toEqual([".portico", "documents.sqlite", "portico.config.json"]);
  });

  it("are written by the service, too: a webhook is configured in the agent's document", async () => {
    const headers = { "x-agent-service-token": token("agentServiceToken"), "content-type": "application/json" };
    const body = JSON.stringify({ promptTemplate: "Deploy", toolIds: [], maxTurns: 7 });
    const url = `${service.url("agent")}/api/agents/helper/webhooks/events/deploy`;
    expect((await fetch(url, { method: "PUT", headers, body })).status).toBe(200);
    const database = new DatabaseSync(path, { readOnly: true });
    const [{ value }] = database.prepare("SELECT value FROM agents WHERE key = 'helper:agent.json'").all() as [{ value: string }];
    database.close();
    expect(JSON.parse(value)).toMatchObject({ name: "Helper", webhooks: expect.anything() });
  });

  it("that change are served as they are now", async () => {
    await write("workflows", "greet.yaml", GREET.replace("Greet", "Greeting"));
    const list = async () =>
      (JSON.parse((await service.run("workflow", "list", "--json")).stdout) as { workflows: { name: string }[] }).workflows;
    await expect.poll(async () => (await list()).map(({ name }) => name), { interval: 500 }).toEqual(["Greeting"]);
  });

  it("are found by doctor, and what is wrong with them", async () => {
    const good = await service.run("doctor");
    expect(good.stdout).toContain('1 in the store of the driver "db0"');
    expect(good.stdout).toMatch(/workflows: 1 definition is valid/);
    const other = temporaryFolder();
    const bad = await runCommand(["doctor"], { cwd: other.path, env: { PORTICO_AGENT_DOCUMENTS_DRIVER: "azure-cosmos" } });
    expect(bad.code).toBe(1);
    expect(bad.stdout).toContain("needs the package @azure/cosmos");
    other.remove();
  });

  it("are listed by config with their source, and no option is shown", async () => {
    const { stdout } = await service.run("config");
    expect(stdout).toMatch(/agent\.documents\.driver\s+.*db0/);
    expect(stdout).not.toContain(path);
  });
});

it("a driver that is not to be had stops the start with a sentence; an unknown one is a mistake in the configuration", async () => {
  const start = (driver: string) => runCommand(["start", "--json"], { env: { PORTICO_WORKFLOW_DOCUMENTS_DRIVER: driver } });
  const [missing, unknown] = [await start("azure-cosmos"), await start("floppy")];
  expect([missing.code, unknown.code]).toEqual([69, 78]);
  expect(missing.stderr).toContain('The driver "azure-cosmos" of unstorage needs the package @azure/cosmos');
  expect(unknown.stderr).toContain("workflow.documents.driver: expected");
});

it("the drivers of the configuration are unstorage's own names", () => {
  expect(DOCUMENT_DRIVERS.filter((name) => !(name in builtinDrivers))).toEqual([]);
});
