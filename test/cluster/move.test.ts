import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { jsonCaller } from "../fixtures/platform-caller.ts";
import { DATA_FOLDER, fixtureEnvironment } from "../fixtures/platform-folder.ts";
import { withToolsById, readAnswers } from "../fixtures/read-answers.ts";
import { type ClusterPlace, clusterPlace } from "../harness/cluster.ts";
import { runCommand, startPortico } from "../harness/portico-process.ts";

const FIXTURE = join(import.meta.dirname, "../fixtures/stores/first");

const first = await clusterPlace();
await first?.remove();

describe.skipIf(!first)("portico move", () => {
  let place: ClusterPlace;
  beforeEach(async () => {
    place = (await clusterPlace())!;
    for (const [name, content] of [
      ["agents/helper/agent.json", { name: "Helper" }],
      ["workflows/greet.json", { nodes: { a: { type: "transform", with: { value: 1 } } } }],
    ] as const) {
      mkdirSync(join(place.folder, name, ".."), { recursive: true });
      writeFileSync(join(place.folder, name), JSON.stringify(content));
    }
    expect((await place.run("migrate")).code).toBe(0);
  });
  afterEach(() => place.remove());
  const local = () => startPortico({ cwd: place.folder });
  const move = (...args: string[]) => place.run("move", "--from", ".portico", ...args);

  it("brings tokens, agents, definitions and files of a local instance into the cluster, once", async () => {
    const service = await local();
    const { stdout: token } = await service.run("token", "issue", "--provider", "demo", "--label", "of local");
    await service.stop();

    const { code, stdout, stderr } = await move("--json");
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ documents: 2 });
    const [moved] = JSON.parse((await place.run("token", "list", "--json")).stdout) as { label: string }[];
    expect([moved!.label, token.startsWith("service_")]).toEqual(["of local", true]);
    expect((await place.run("documents", "list")).stdout).toBe("agents/helper/agent.json\nworkflows/greet.json\n");
    expect(await move()).toMatchObject({ code: 1, stderr: "An instance was moved into this store before\n" });
  });

  it("refuses a running instance, a folder without one, and a schema that is not made", async () => {
    const service = await local();
    expect(await move()).toMatchObject({ code: 75, stderr: expect.stringContaining("in use") });
    await service.stop();
    expect(await place.run("move", "--from", "agents")).toMatchObject({
      code: 66,
      stderr: expect.stringContaining("agents is not"),
    });
    await place.database.query("DROP SCHEMA portico CASCADE");
    expect(await move()).toMatchObject({ code: 78, stderr: expect.stringContaining("portico migrate") });
  });

  it("that has not finished stops a start, and doctor tells of it", async () => {
    await place.database.query(`INSERT INTO portico."instance-moves" VALUES ('local', 1, '{"isComplete":false}')`);
    const { code, stderr } = await place.run("start", "cluster", "--json");
    expect([code, stderr]).toEqual([78, expect.stringContaining("A move into this cluster has not finished")]);
    const findings = JSON.parse((await place.run("doctor", "--json")).stdout) as { about: string; fix?: string }[];
    expect(findings.find(({ about }) => about === "schema")?.fix).toBe("repeat portico move");
  });

  it("tells what it moved", async () => {
    await (await local()).stop();
    const { code, stdout } = await move();
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^records +\d+\n(?:\w+ +\d+\n)+Everything was compared\. \.portico still has its data: do not start it again\.\n$/,
    );
  });

  it("lets the cluster serve what the local instance kept, and end what it had accepted", async () => {
    cpSync(FIXTURE, place.folder, { recursive: true });
    const dataDir = join(place.folder, DATA_FOLDER);
    const { agentServiceToken, workflowServiceToken } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8"));
    const tokens = [
      { token: agentServiceToken, userId: "owner", role: "owner" },
      { token: "fixture-token-of-a-member", userId: "mia", role: "member" },
    ];
    const env = {
      ...{ ...place.env, ...fixtureEnvironment },
      ...{ PORTICO_AGENT_TOKENS: JSON.stringify(tokens), WORKFLOW_SERVICE_TOKEN: workflowServiceToken },
    };
    const moved = await runCommand(["move", "--from", DATA_FOLDER], { cwd: place.folder, env });
    expect([moved.code, moved.stderr]).toEqual([0, ""]);

    const { filled, answers } = JSON.parse(readFileSync(join(FIXTURE, "expected.json"), "utf8"));
    await using service = await startPortico({ cwd: place.folder, args: ["cluster"], env, hasOwnProcess: true });
    expect(withToolsById(await readAnswers(service, dataDir, filled))).toMatchObject(withToolsById(answers));

    const { agent, workflow } = jsonCaller(service, dataDir);
    const models = await fetch(`${service.url("proxy")}/models`, { headers: { authorization: `Bearer ${filled.safeToken}` } });
    expect(models.status).toBe(200);
    const { executionGrantId } = await agent("POST", "/api/execution-grants", { workflowId: "notice" });
    const run = `/api/workflow/notice/runs/${filled.workflowRuns.notice}`;
    const decision = { decision: "approve", values: { audience: "members" } };
    await workflow("POST", `${run}/gate`, decision, { "x-execution-grant": executionGrantId });
    await expect.poll(async () => (await workflow("GET", run)).status).toBe("completed");
    expect((await workflow("GET", run)).finalOutputs).toEqual({ text: "To members: The lift", signed: true });
  });
});
